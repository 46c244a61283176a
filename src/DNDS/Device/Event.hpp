/// @file Event.hpp
/// @brief Owner of a device event.
#pragma once

#include "DNDS/Device/Hooks.hpp"

#include <memory>

namespace DNDS::Device {

/// A point in a stream that other streams and the host wait for. Move-only; Local.
///
///     Device::Event packed;
///     packed.record(boundary);          // after what is queued now
///     packed.holdBack(interior);        // later work on interior runs after it
///     packed.synchronize();             // the host waits, too
///
/// The constructor throws NotBuiltError without a device. Waiting for an event that was never recorded returns at once.
class Event {
  public:
    Event() : handle_(createEvent()) {}

    /// Null in a moved-from object.
    EventHandle handle() const noexcept { return handle_.get(); }

    /// The event happens when the work queued on `stream` until now has run. Returns at once.
    void record(StreamHandle stream) const { recordEvent(handle_.get(), stream); }
    /// Makes later work on `stream` wait for the event; returns at once.
    void holdBack(StreamHandle stream) const { waitEvent(stream, handle_.get()); }
    bool reached() const { return eventReached(handle_.get()); }
    void synchronize() const { synchronizeEvent(handle_.get()); }

  private:
    std::unique_ptr<EventImpl, EndBy<destroyEvent>> handle_;
};

/// Work queued on `later` from now on runs after the work that `earlier` holds now.
inline void runAfter(StreamHandle later, StreamHandle earlier) {
    const Event event;
    event.record(earlier);
    event.holdBack(later);
}

} // namespace DNDS::Device
