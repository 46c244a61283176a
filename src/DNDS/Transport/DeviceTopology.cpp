#include "DNDS/Transport/DeviceTopology.hpp"

#include "DNDS/Base/Attempt.hpp"
#include "DNDS/Base/Environment.hpp"
#include "DNDS/Device/SharedMemory.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/GpuAware.hpp"
#include "DNDS/Mpi/NodeArena.hpp"
#include "DNDS/Mpi/NodeTopology.hpp"
#include "DNDS/Storage/HostDeviceBuffer.hpp"
#include "DNDS/Transport/PackedSource.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <new>
#include <utility>

#include <unistd.h>

namespace DNDS {

namespace {

/// Bytes in device memory and what they should be.
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

/// What a rank tells the others of its node while they try to read its memory.
struct Trial {
    Device::SharedHandle handle;
    std::atomic<std::uint32_t> offered{0};
    std::atomic<std::uint32_t>
        read[1]; ///< by rank of the node, as many as there are: 1 where that rank's bytes were right
};

constexpr std::size_t trialBytes = 4096;
constexpr std::size_t trialOffset = 1040; ///< so that handles are seen to keep offsets

std::uint64_t seedOf(int rank) { return 77 + static_cast<std::uint64_t>(rank); }

/// Reads what another rank offers; why it could not, or empty.
std::string tryToRead(const Trial &trial, int owner) {
    if (trial.offered.load(std::memory_order_acquire) == 0)
        return "it does not share its device memory";
    try {
        const Device::SharedMemory memory(trial.handle);
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

/// While it lives, a crash inside MPI says what to do about it. It still ends the program: nothing can be said of MPI's
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

/// Device memory that goes round the ring of ranks.
class RingTrial {
  public:
    RingTrial(const CommunicatorView &comm, std::size_t bytes)
        : bytes_(static_cast<int>(bytes)), right_((comm.rank() + 1) % comm.size()),
          left_((comm.rank() + comm.size() - 1) % comm.size()), sent_(bytes, seedOf(comm.rank())), received_(bytes, 0),
          from_(Device::messageAddress(sent_.device(), bytes)), to_(Device::messageAddress(received_.device(), bytes)) {
    }

    /// Why that failed, or empty. Nothing is thrown before the transfer, in which all ranks take part.
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

/// Sources of rows that readers may still look at: reachable for ever, so that nothing reports them as lost.
static std::vector<std::unique_ptr<PackedSource>> &keptForEver() {
    static auto *const kept = new std::vector<std::unique_ptr<PackedSource>>;
    return *kept;
}

DeviceTopology::~DeviceTopology() {
    reap();
    for (std::unique_ptr<PackedSource> &source : retired_) // of readers that have not closed yet
        if (attempt([&] { keptForEver().push_back(std::move(source)); }))
            static_cast<void>(source.release()); // it stays taken all the same
}

void DeviceTopology::tryPeers(CommunicatorContext &context, bool available) {
    const CommunicatorView &comm = context.comm();
    const NodeTopology &node = context.node();
    const std::uint64_t round = context.nextRound();
    const std::size_t ranksHere = node.members.size();
    const std::size_t bytes = sizeof(Trial) + ranksHere * sizeof(std::atomic<std::uint32_t>);
    std::unique_ptr<Pattern> pattern;
    Trial *mine = nullptr;
    const std::exception_ptr failure = attempt([&] {
        if (node.arena) {
            mine = new (node.arena->allocate(bytes, 128)) Trial{};
            for (std::size_t k = 0; k < ranksHere; ++k)
                new (&mine->read[k]) std::atomic<std::uint32_t>(0);
            if (available) {
                pattern = std::make_unique<Pattern>(trialBytes, seedOf(comm.rank()));
                mine->handle = Device::share(pattern->device() + trialOffset);
                mine->offered.store(1, std::memory_order_release);
            }
            for (std::size_t k = 0; k < ranksHere; ++k)
                node.arena->publish(static_cast<int>(k), round, *node.arena->locate(mine));
        }
    });
    const std::string whyNotMine = failure     ? describeFailure(failure).message
                                   : available ? std::string()
                                               : Device::unavailableReason();
    comm.barrier();
    const auto trialOf = [&](int nodeRank) -> Trial * {
        Trial *trial = nullptr; // where its memory cannot be mapped
        static_cast<void>(attempt([&] {
            if (const auto place = node.arena ? node.arena->lookUp(nodeRank, round) : std::nullopt)
                trial = reinterpret_cast<Trial *>(node.arena->translate(nodeRank, *place));
        }));
        return trial;
    };
    const auto forEachPeer = [&](auto &&body) {
        for (std::size_t k = 0; k < ranksHere; ++k)
            body(node.members[k], static_cast<int>(k), whyNot_[node.members[k]]);
    };
    forEachPeer([&](int peer, int nodeRank, std::string &why) {
        const Trial *theirs = mine != nullptr ? trialOf(nodeRank) : nullptr;
        why = !node.arena           ? node.whyNoArena
              : !whyNotMine.empty() ? whyNotMine
              : theirs == nullptr   ? "it takes no part"
                                    : tryToRead(*theirs, peer);
        if (mine != nullptr)
            mine->read[nodeRank].store(why.empty() ? 1 : 0, std::memory_order_release);
    });
    comm.barrier();
    const int me = node.nodeRank(comm.rank());
    forEachPeer([&](int, int nodeRank, std::string &why) {
        const Trial *theirs = mine != nullptr ? trialOf(nodeRank) : nullptr;
        if (why.empty() && (theirs == nullptr || theirs->read[me].load(std::memory_order_acquire) == 0))
            why = "it cannot read this rank's device memory";
    });
    comm.barrier(); // before memory goes that others look at
    if (mine != nullptr)
        node.arena->deallocate(mine, bytes, 128);
}

void DeviceTopology::tryMpi(CommunicatorContext &context, bool available) {
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
            const GpuAwareClaim said =
                Device::name() == "emulated" ? GpuAwareClaim{true, "the emulated MPI says so"} : claimOfMpi();
            (said.claimed ? claim : whyNot) = said.source;
        }
    });
    const auto allFine = [&] { return comm.allReduce(whyNot.empty() ? 1 : 0, MPI_MIN) == 1; };
    for (const std::size_t bytes : {std::size_t{64}, std::size_t{1} << 20U}) { // two protocols of MPI libraries
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

void DeviceTopology::retire(std::unique_ptr<PackedSource> source) noexcept {
    reap();
    const std::lock_guard lock(retiring_);
    if (!source->unused() && attempt([&] { retired_.push_back(std::move(source)); }))
        static_cast<void>(source.release()); // it stays taken
}

void DeviceTopology::reap() noexcept {
    const std::lock_guard lock(retiring_);
    std::erase_if(retired_, [](const std::unique_ptr<PackedSource> &source) { return source->unused(); });
}

} // namespace DNDS
