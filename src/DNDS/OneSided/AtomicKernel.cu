#include "DNDS/OneSided/DeviceAccess.hpp"

#include "DNDS/Device/ParallelFor.hpp"

namespace DNDS::Detail {

namespace {

/// The host's atomic operation on a word of device memory, as a kernel of one thread: atomic together with operations
/// of other kernels, which the host's own atomics are not over PCIe. Costs a launch a word.
struct AtomicKernel {
    void *word;
    AtomicRequest request;
    std::uint64_t *result;
    DNDS_HOST_DEVICE void operator()(index /*thread*/) const {
        Atomics::fenceSystem(); // orders earlier work of the stream on other ranks' memory
        *result = Atomics::apply(word, request);
        Atomics::fenceSystem();
    }
};

} // namespace

void launchAtomic(Device::StreamHandle stream, void *word, const AtomicRequest &request, std::uint64_t *result) {
    parallelFor(Executor::device(stream), 1, AtomicKernel{word, request, result});
}

} // namespace DNDS::Detail
