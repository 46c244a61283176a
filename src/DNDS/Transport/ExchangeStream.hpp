/// @file ExchangeStream.hpp
/// @brief The stream on which one exchange packs and unpacks, and its order with the program's streams.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/Stream.hpp"

namespace DNDS {

/// A stream of high priority, so that boundary rows leave while kernels on inner rows run. Local; move-only.
struct ExchangeStream {
    Device::Stream stream{Device::Priority::High};
    Device::Event produced; ///< the exchange waits for it
    Device::Event finished; ///< consumers of the exchange wait for it

    /// Later work on this stream runs after the present work on `producer`.
    void follow(Device::StreamHandle producer) const {
        produced.record(producer);
        produced.holdBack(stream);
    }
    /// Later work on `consumer` runs after the present work on this stream.
    void precede(Device::StreamHandle consumer) const {
        finished.record(stream);
        finished.holdBack(consumer);
    }
    /// Waits for the present work on the stream. If that throws the device is lost, and nothing runs there.
    void drain() const noexcept {
        static_cast<void>(attempt([&] { stream.synchronize(); }));
    }
};

} // namespace DNDS
