#include "StreamPair.hpp"

#include "DNDS/Device/DeviceMemory.hpp"

namespace HandWritten {

using DNDS::MemorySpace;

StreamPair::StreamPair(index cells, bool graphs)
    : minimum_(cells), pinned_(3 * sizeof(real), DNDS::Device::pinnedHostMemory()),
      mail_(reinterpret_cast<real *>(pinned_.write(MemorySpace::Host, "numbers of a step")), 3) {
    if (!graphs)
        use_.whyNot = "scheme.graphs is false";
}

void StreamPair::finish() noexcept {
    for (const DNDS::Device::Stream *stream : {&inner, &boundary}) {
        try {
            stream->synchronize();
        } catch (const DNDS::Error &) { // the device is lost, and nothing runs there any more
        }
    }
}

void StreamPair::findSmallest(std::span<const real> timeSteps) {
    minimum_(inner, timeSteps, numbers_.data());
    DNDS::Device::copy(&mail_[0], MemorySpace::Host, numbers_.data(), MemorySpace::Device, sizeof(real), inner);
}

real StreamPair::smallest() {
    inner.synchronize();
    return mail_[0];
}

void StreamPair::set(real length, bool alike) {
    inner.synchronize(); // the one before may be on its way
    mail_[1] = length;
    mail_[2] = alike ? 1 : 0;
}

void StreamPair::sendLength() {
    DNDS::Device::copy(numbers_.data() + 1, MemorySpace::Device, &mail_[1], MemorySpace::Host, 2 * sizeof(real), inner);
}

} // namespace HandWritten
