#include "DNDS/Transport/DeviceTopology.hpp"

#include "DNDS/Base/Environment.hpp"
#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/SharedMemory.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"
#include "DNDS/Mpi/GpuAware.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <span>
#include <utility>

#include <unistd.h>

namespace DNDS {

namespace {

/// Bytes in device memory and their expected values.
/// Each byte depends on the rank and on its place: memory of another rank, or at another offset, is noticed.
class Pattern {
  public:
    Pattern(std::size_t bytes, std::uint64_t seed) : buffer_(bytes) {
        std::byte *to = buffer_.write(MemorySpace::Host, "a trial");
        for (std::size_t k = 0; k < bytes; ++k)
            to[k] = value(seed, k);
        buffer_.toDevice();
    }
    std::byte *device() { return buffer_.write(MemorySpace::Device, "a trial"); }
    bool equals(std::uint64_t seed) {
        buffer_.toHost();
        const std::byte *bytes = std::as_const(buffer_).read(MemorySpace::Host, "a trial");
        for (std::size_t k = 0; k < buffer_.bytes(); ++k)
            if (bytes[k] != value(seed, k))
                return false;
        return true;
    }
    static std::byte value(std::uint64_t seed, std::size_t k) {
        return static_cast<std::byte>(((seed + 1) * 0x9e3779b97f4a7c15ULL + k * 0x85ebca6bU) >> 24U);
    }

  private:
    HostDeviceBuffer buffer_;
};

constexpr std::size_t trialBytes = 4096;
constexpr std::size_t trialOffset = 1040; ///< so that handles must keep offsets

/// A different pattern a rank, so that reading the wrong rank's memory is noticed.
std::uint64_t seedOf(int rank) { return 77 + static_cast<std::uint64_t>(rank); }

/// A handle in words, for messages.
using HandleWords = std::array<index, (sizeof(Device::SharedHandle) + sizeof(index) - 1) / sizeof(index)>;

/// Reads another rank's offered memory; the reason for a failure, or empty.
std::string tryToRead(std::span<const index> words, int owner) {
    if (words.empty())
        return "it does not share its device memory";
    try {
        // Reads bytes through the handle and compares them: devices and drivers may open memory and still deliver
        // something else.
        Device::SharedHandle handle;
        std::memcpy(static_cast<void *>(&handle), words.data(), sizeof handle);
        const Device::SharedMemory memory(handle);
        std::array<std::byte, 512> bytes{};
        const Device::Stream stream;
        Device::copy(bytes.data(), MemorySpace::Host, memory.get(), MemorySpace::Device, bytes.size(), stream);
        stream.synchronize();
        for (std::size_t k = 0; k < bytes.size(); ++k)
            if (bytes[k] != Pattern::value(seedOf(owner), trialOffset + k))
                return "its device memory was opened, but other bytes were found there";
    } catch (const Error &error) {
        return error.message();
    }
    return {};
}

/// While it lives, a crash inside MPI prints advice. It still ends the program: nothing is known about MPI's
/// state afterwards.
class ExplainCrash {
  public:
    ExplainCrash() {
        struct sigaction action {};
        action.sa_handler = explain;
        ::sigemptyset(&action.sa_mask);
        ::sigaction(SIGSEGV, &action, &segmentation_);
        ::sigaction(SIGBUS, &action, &bus_);
    }
    ~ExplainCrash() {
        ::sigaction(SIGSEGV, &segmentation_, nullptr);
        ::sigaction(SIGBUS, &bus_, nullptr);
    }
    ExplainCrash(const ExplainCrash &) = delete;
    ExplainCrash &operator=(const ExplainCrash &) = delete;

  private:
    static void explain(int signal) {
        constexpr char text[] = "DNDS: the MPI library says that it takes device memory, and crashed when it was given "
                                "some: set DNDS_DISABLE_GPU_AWARE_MPI=1\n";
        static_cast<void>(!::write(STDERR_FILENO, text, sizeof(text) - 1));
        std::signal(signal, SIG_DFL);
        ::raise(signal);
    }

    struct sigaction segmentation_ {};
    struct sigaction bus_ {};
};

/// Sends device memory around the ring of ranks.
class RingTrial {
  public:
    RingTrial(const CommunicatorView &comm, std::size_t bytes)
        : bytes_(static_cast<int>(bytes)), right_((comm.rank() + 1) % comm.size()),
          left_((comm.rank() + comm.size() - 1) % comm.size()), sent_(bytes, seedOf(comm.rank())), received_(bytes, 0),
          from_(Device::messageAddress(sent_.device(), bytes)), to_(Device::messageAddress(received_.device(), bytes)) {
    }

    /// The reason for a failure, or empty. Nothing is thrown before the transfer, in which all ranks take part.
    std::string run(const Channel &channel) {
        int code = MPI_SUCCESS;
        {
            const ExplainCrash explain;
            code = MPI_Sendrecv(from_, bytes_, MPI_BYTE, right_, channel.tag, to_, bytes_, MPI_BYTE, left_, channel.tag,
                                channel.comm, MPI_STATUS_IGNORE);
        }
        if (code != MPI_SUCCESS)
            return "sending device memory failed";
        return received_.equals(seedOf(left_)) ? "" : "device memory arrived with other bytes";
    }

  private:
    int bytes_;
    int right_;
    int left_;
    Pattern sent_;
    Pattern received_;
    void *from_;
    void *to_;
};

} // namespace

DeviceTopology &DeviceTopology::of(CommunicatorContext &context) {
    return context.attach<DeviceTopology>([&] { return std::shared_ptr<DeviceTopology>(new DeviceTopology(context)); });
}

const std::string &DeviceTopology::whyNot(int peer) const {
    static const std::string elsewhere = "on another node";
    const auto found = whyNot_.find(peer);
    return found == whyNot_.end() ? elsewhere : found->second;
}

std::shared_ptr<DeviceTopology> DeviceTopology::madeFor(const CommunicatorContext &context) {
    std::shared_ptr<DeviceTopology> devices = context.attachment<DeviceTopology>();
    DNDS_CHECK(devices != nullptr, StateError, "no exchange of device memory was made on this communicator");
    return devices;
}

DeviceTopology::DeviceTopology(CommunicatorContext &context) {
    const bool available = Device::available();
    tryPeers(context, available);
    tryMpi(context, available);
}

// Collective. O(ranks of the node) handles and opened buffers on each rank.
void DeviceTopology::tryPeers(CommunicatorContext &context, bool available) {
    const NodeTopology &node = context.node();
    std::unique_ptr<Pattern> pattern;
    RankLists handles; // handles of the pattern, to each rank of the node; none if this rank shares no device memory
    // Each rank shares a pattern with the ranks of its node, reads theirs, and tells each rank whose pattern it has
    // read. A pair reaches each other if both have read: the answer is the same on both sides. Three steps, two
    // sparse exchanges.
    std::string whyNotMine = !node.arena ? node.whyNoArena : !available ? Device::unavailableReason() : std::string();
    const std::exception_ptr failure = attempt([&] {
        if (!whyNotMine.empty())
            return;
        pattern = std::make_unique<Pattern>(trialBytes, seedOf(context.comm().rank()));
        const Device::SharedHandle handle = Device::share(pattern->device() + trialOffset);
        HandleWords words{};
        std::memcpy(words.data(), &handle, sizeof handle);
        for (const int peer : node.members)
            handles.append(peer, words);
    });
    if (failure) {
        whyNotMine = describeFailure(failure).message;
        handles = {};
    }
    const auto listFrom = [](const RankLists &lists, int rank) {
        const auto k = static_cast<std::size_t>(std::ranges::find(lists.ranks, rank) - lists.ranks.begin());
        return k < lists.size() ? lists.list(k) : std::span<const index>();
    };
    const RankLists offered = sparseExchange(context, handles);
    RankLists read; // to the ranks whose memory this one has read
    context.comm().guarded([&] {
        for (const int peer : node.members) {
            std::string &why = whyNot_[peer];
            why = !whyNotMine.empty() ? whyNotMine : tryToRead(listFrom(offered, peer), peer);
            if (why.empty())
                read.append(peer, std::array<index, 1>{1});
        }
    });
    const RankLists readers = sparseExchange(context, read); // all have read: the pattern may be freed
    for (auto &[peer, why] : whyNot_)
        if (why.empty() && listFrom(readers, peer).empty())
            why = "it cannot read this rank's device memory";
}

// Collective: at most two transfers around the ring, of 64 bytes and 1 MiB, and a reduction before each.
void DeviceTopology::tryMpi(CommunicatorContext &context, bool available) {
    // A claim of the MPI library justifies a trial, a ring of two messages of different size, and only right bytes
    // on all ranks make it true. Before each trial all ranks agree that all take part: a rank that did not would
    // leave its neighbours waiting.
    const CommunicatorView &comm = context.comm();
    const Channel channel = context.nextChannel();
    std::string whyNot;
    std::string claim;
    const auto attempted = [&](const auto &body) {
        if (const std::exception_ptr failure = attempt(body))
            whyNot = describeFailure(failure).message;
    };
    attempted([&] {
        if (readEnvironment().disableGpuAwareMpi) {
            whyNot = "DNDS_DISABLE_GPU_AWARE_MPI is set";
        } else if (!available) {
            whyNot = Device::unavailableReason();
        } else if (whyNot = Device::whyNoMessages(); whyNot.empty()) {
            const auto [claimed, source] =
                Device::name() == "emulated" ? std::pair(true, std::string("the emulated MPI says so")) : claimOfMpi();
            (claimed ? claim : whyNot) = source;
        }
    });
    const auto allFine = [&] { return comm.allReduce(whyNot.empty() ? 1 : 0, MPI_MIN) == 1; };
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{1} << 20U}) { // two protocols of MPI libraries
        // Everything that may throw is done in the constructor, before the ranks agree to begin.
        std::unique_ptr<RingTrial> trial;
        if (whyNot.empty())
            attempted([&] { trial = std::make_unique<RingTrial>(comm, bytes); });
        if (!allFine())
            break;
        attempted([&] { whyNot = trial->run(channel); });
        if (!whyNot.empty())
            whyNot = fmt::format("{}, but {}", claim, whyNot);
    }
    gpuAware_ = allFine();
    aboutMpi_ = gpuAware_         ? fmt::format("{}, and moved device memory rightly", claim)
                : !whyNot.empty() ? whyNot
                                  : std::string("MPI does not move device memory of another rank");
}

} // namespace DNDS
