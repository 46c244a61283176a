#include "DNDS/OneSided/DeviceAccess.hpp"

#include "DNDS/Device/KernelLoading.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>

namespace DNDS {

namespace {

/// `DeviceOfRank` in a message.
struct DeviceMessage {
    std::array<char, 64> identity{};
    std::array<char, 184> scheduler{};
    std::uint64_t lazy = 0;
};

/// Calls `applyTo(at, request)` for each word of `bytes` bytes, at offset `at`, with its operand from `from` (null:
/// zeros). The result, the word's previous value, goes to `to` (null: nowhere), which may be `from`.
/// Words are taken in ascending order, and each result is stored before the next operand is read: `to` may equal
/// `from`.
template <class ApplyTo>
void forEachWord(AtomicRequest request, const void *from, void *to, std::size_t bytes, ApplyTo &&applyTo) {
    // The size of a word from its kind: integers are listed in pairs of ascending size.
    const auto number = static_cast<unsigned>(request.kind) - static_cast<unsigned>(ElementKind::Int8);
    const std::size_t size = number < 8 ? std::size_t{1} << (number / 2) : request.kind == ElementKind::Float32 ? 4 : 8;
    for (std::size_t at = 0; at < bytes; at += size) {
        request.operand = 0;
        if (from != nullptr)
            std::memcpy(&request.operand, static_cast<const std::byte *>(from) + at, size);
        const std::uint64_t before = applyTo(at, request);
        if (to != nullptr)
            std::memcpy(static_cast<std::byte *>(to) + at, &before, size);
    }
}

} // namespace

/// Written by kernels, read by the host: pinned, so that neither copies.
struct DeviceAccess::Pinned {
    FaultRecord faults;
    std::uint64_t result = 0;
};

DeviceAccess::DeviceAccess(std::shared_ptr<CommunicatorContext> context, std::byte *base,
                           const std::vector<std::uint64_t> &bytes, const std::string &name)
    : context_(std::move(context)), rank_(context_->comm().rank()) {
    const CommunicatorView &comm = context_->comm();
    DeviceTopology::of(*context_); // tries which ranks can be reached
    Device::SharedHandle handle;
    comm.guarded([&] {
        bases_.resize(bytes.size());
        opened_.resize(bytes.size());
        bases_[static_cast<std::size_t>(rank_)] = base;
        handle = shareOrExplain(base, name);
    });
    // O(ranks) handles on each rank; handles of reachable ranks are opened once, for copies and for kernels.
    const auto handles = comm.allGatherV(std::span<const Device::SharedHandle>(&handle, 1));
    const std::vector<Detail::DeviceOfRank> devices = gatherDevices();
    // Requests are answered by the owner's service, which is set up collectively: needed on all ranks if one rank
    // cannot reach another.
    int anyFar = 0;
    comm.guarded([&] {
        devices_ = DeviceTopology::madeFor(*context_);
        for (std::size_t rank = 0; rank < handles.size(); ++rank)
            if (static_cast<int>(rank) == rank_) {
                continue;
            } else if (!devices_->reaches(static_cast<int>(rank))) {
                anyFar = 1;
            } else {
                opened_[rank] = Device::SharedMemory(handles[rank]);
                bases_[rank] = opened_[rank].as<std::byte>();
            }
        findAbilities(devices);
        pinned_.reset(new (Device::allocatePinned(sizeof(Pinned))) Pinned, Device::deallocatePinned);
        deviceBases_ = Detail::toDeviceBuffer(bases_);
        deviceBytes_ = Detail::toDeviceBuffer(bytes);
    });
    if (comm.allReduce(anyFar, MPI_MAX) != 0)
        messages_ = std::make_unique<MessageAccess>(context_, name, *this);
}

DeviceAccess::~DeviceAccess() = default;

Device::SharedHandle DeviceAccess::shareOrExplain(const std::byte *base, const std::string &name) {
    try {
        return Device::share(base);
    } catch (const ArgumentError &error) {
        throw ArgumentError(
            fmt::format("{}: other processes cannot open this memory: {}. Let DNDS allocate it "
                        "(Window::allocate, a heap, Device::allocate, arrays), as what cudaMalloc gives "
                        "may be a piece of something larger, and pools are not exported at all",
                        name, error.message()));
    }
}

/// All ranks get the facts about all devices, and so decide alike whether kernels may wait. O(ranks).
std::vector<Detail::DeviceOfRank> DeviceAccess::gatherDevices() const {
    const CommunicatorView &comm = context_->comm();
    // Fixed sizes, so that one gather does; longer texts are refused, not cut.
    DeviceMessage mine;
    comm.guarded([&] {
        const auto write = [](const std::string &text, auto &to) {
            DNDS_CHECK(text.size() < to.size(), StateError, "what is known of the device is longer than expected: {}",
                       text);
            std::ranges::copy(text, to.begin());
        };
        write(Device::deviceInfo().identity, mine.identity);
        write(Device::sharedScheduler(), mine.scheduler);
        mine.lazy = Device::loadsKernelsLazily() ? 1 : 0;
    });
    const std::vector<DeviceMessage> all = comm.allGatherV(std::span<const DeviceMessage>(&mine, 1));
    std::vector<Detail::DeviceOfRank> devices;
    for (const DeviceMessage &message : all)
        devices.push_back({message.identity.data(), message.scheduler.data(), message.lazy != 0});
    return devices;
}

/// Spinning kernels need concurrent execution: on a time-sliced GPU the waiting kernel may hold the device while the
/// one that would signal it is not scheduled. O(ranks x devices) comparisons, once. All ranks get the same answer.
std::string Detail::whyNoKernelWaits(std::span<const DeviceOfRank> devices) {
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
        // Each rank is compared with the first one on the same device: all of them must share one scheduler.
        const auto before = std::ranges::find(devices, devices[rank].identity, &DeviceOfRank::identity);
        const auto first = static_cast<std::size_t>(before - devices.begin());
        const std::string &one = before->scheduler, &other = devices[rank].scheduler;
        if (first == rank || (one == other && !one.empty()))
            continue;
        const auto orNothing = [](const std::string &text) { return text.empty() ? "without MPS" : text.c_str(); };
        return fmt::format("ranks {} and {} share a GPU ({}; {}), and their kernels take turns: one that waits for "
                           "another rank keeps it from running. Use one rank a GPU, start NVIDIA's MPS before the "
                           "program (nvidia-cuda-mps-control -d), or wait on the host",
                           first, rank, orNothing(one), orNothing(other));
    }
    const auto lazy = std::ranges::find(devices, true, &DeviceOfRank::lazy);
    if (lazy != devices.end())
        return fmt::format("CUDA loads each kernel of rank {} when it is first launched (lazy loading), which may wait "
                           "for kernels that run: one that waits for that launch keeps it from running. Start all "
                           "ranks with CUDA_MODULE_LOADING=EAGER in the environment, or wait on the host",
                           lazy - devices.begin());
    return {};
}

void DeviceAccess::findAbilities(const std::vector<Detail::DeviceOfRank> &devices) {
    whyNoWaits_ = Detail::whyNoKernelWaits(devices);
    // By rank, a copy of `whyNoAtomics_` as flags that kernels can read.
    std::vector<std::uint8_t> lacking(devices.size());
    whyNoAtomics_.resize(devices.size());
    for (std::size_t rank = 0; rank < devices.size(); ++rank)
        if (static_cast<int>(rank) != rank_ && bases_[rank] != nullptr) { // else the owner changes its words
            whyNoAtomics_[rank] = Device::whyNoAtomics(devices[rank].identity);
            lacking[rank] = whyNoAtomics_[rank].empty() ? 0 : 1;
        }
    if (std::ranges::find(lacking, 1) != lacking.end())
        deviceNoAtomics_ = Detail::toDeviceBuffer(lacking);
}

RemoteTable DeviceAccess::table() const {
    return {deviceBases_.data(),    deviceBytes_.data(), &pinned_->faults, rank_, static_cast<int>(bases_.size()),
            deviceNoAtomics_.data()};
}

/// Cost: a copy, or a kernel for each word, on one stream; a request and an answer where the device is out of reach.
void DeviceAccess::operate(const RemoteOperation &operation, const void *from, void *to, Completion completion) {
    const int rank = operation.rank;
    if (base(rank) == nullptr)
        return messages_->operate(operation, from, to, completion);
    // One stream for all operations of the host: they reach the memory in the order of the calls, so `fence` has
    // nothing to do.
    std::byte *const there = base(rank) + operation.offset;
    const bool gets = operation.verb == RemoteVerb::Get, words = !gets && operation.verb != RemoteVerb::Put;
    const AtomicOp op = operation.request.op;
    DNDS_CHECK(!words || whyNoAtomics(rank).empty() || op == AtomicOp::Fetch || op == AtomicOp::Set, StateError,
               "the atomic operation {} on device memory of rank {}: this rank's GPU cannot do it ({}): use puts and "
               "signals that are set, or a heap in host memory",
               atomicOpName(op), rank, whyNoAtomics(rank));
    const std::lock_guard lock(mutex_);
    // Words go through a kernel, one launch a word: only the device's atomics are atomic together with its
    // kernels'. A caller that wants the old value waits for each.
    if (words)
        forEachWord(operation.request, from, to, operation.bytes, [&](std::size_t at, const AtomicRequest &request) {
            Detail::launchAtomic(stream_, there + at, request, &pinned_->result);
            if (!operation.isAnswered())
                return std::uint64_t{0};
            stream_.synchronize();
            return pinned_->result;
        });
    else if (gets)
        Device::copy(to, MemorySpace::Host, there, MemorySpace::Device, operation.bytes, stream_);
    else
        Device::copy(there, MemorySpace::Device, from, MemorySpace::Host, operation.bytes, stream_);
    if (completion == Completion::Now)
        stream_.synchronize();
}

void DeviceAccess::quiet() {
    {
        const std::lock_guard lock(mutex_);
        stream_.synchronize();
    }
    if (messages_)
        messages_->quiet();
}

void DeviceAccess::renew() {
    Device::synchronizeAll(); // kernels, too, whose waits time out
    if (messages_)
        messages_->renew();
}

/// Answers to other ranks are sent before mappings are closed; `RemoteMemory::close` meets the others afterwards.
/// Order: no rank sends requests any more (`meet` has ended), answers leave, then mappings are closed.
void DeviceAccess::close() {
    if (messages_)
        messages_->close();
    stream_.synchronize();
    opened_.clear();
}

} // namespace DNDS
