#include "StreamPair.hpp"

#include "DNDS/Device/PinnedMemory.hpp"

namespace Euler {

using DNDS::MemorySpace;

StreamPair::StreamPair(index cells, bool graphs)
    : minimum_(cells), pinned_(2 * sizeof(real), DNDS::Device::pinnedHostMemory()),
      mail_(reinterpret_cast<real *>(pinned_.write(MemorySpace::Host, "numbers of a step")), 2) {
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

void StreamPair::set(real value) {
    if (mail_[1] == value)
        return;
    inner.synchronize(); // the one before may be on its way
    mail_[1] = value;
}

void StreamPair::sendNumber() {
    DNDS::Device::copy(numbers_.data() + 1, MemorySpace::Device, &mail_[1], MemorySpace::Host, sizeof(real), inner);
}

} // namespace Euler
