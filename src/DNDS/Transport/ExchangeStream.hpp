/// @file ExchangeStream.hpp
/// @brief The stream on which one exchange packs and unpacks, and how it meets the streams of the program.
#pragma once

#include "DNDS/Base/Attempt.hpp"
#include "DNDS/Device/Event.hpp"
#include "DNDS/Device/Stream.hpp"

namespace DNDS {

/// A stream of high priority, so that boundary rows leave while kernels on inner rows run. Local; move-only.
struct ExchangeStream {
    Device::Stream stream{Device::Priority::High};
    Device::Event produced; ///< the exchange waits for it
    Device::Event finished; ///< consumers of the exchange wait for it

    /// Everything queued here from now on runs after what `producer` holds now.
    void follow(Device::StreamHandle producer) const {
        produced.record(producer);
        produced.holdBack(stream);
    }
    /// Everything queued on `consumer` from now on runs after what the stream holds now.
    void precede(Device::StreamHandle consumer) const {
        finished.record(stream);
        finished.holdBack(consumer);
    }
    /// Waits for what the stream holds. Where that throws the device is lost, and nothing runs there.
    void drain() const noexcept {
        static_cast<void>(attempt([&] { stream.synchronize(); }));
    }
};

} // namespace DNDS
