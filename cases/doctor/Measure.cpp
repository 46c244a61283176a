#include "Measure.hpp"

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <string>

namespace DNDS::Doctor {

namespace {

/// One side of a ping-pong; the fastest round trip in seconds.
double pingPong(const CommunicatorView &comm, int peer, bool first, std::span<char> bytes, int trips) {
    double fastest = 1e30;
    const auto send = [&] {
        checkMpi(MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_CHAR, peer, 1, comm.handle()), "MPI_Send");
    };
    const auto receive = [&] {
        checkMpi(
            MPI_Recv(bytes.data(), static_cast<int>(bytes.size()), MPI_CHAR, peer, 1, comm.handle(), MPI_STATUS_IGNORE),
            "MPI_Recv");
    };
    for (int trip = 0; trip < trips; ++trip) {
        const double begin = monotonicSeconds();
        if (first)
            send();
        receive();
        if (!first)
            send();
        fastest = std::min(fastest, monotonicSeconds() - begin);
    }
    return fastest;
}

/// This rank and `peer`, which calls it as well; the result is of use where `first`.
Json measurePair(const CommunicatorView &comm, int peer, bool first) {
    constexpr int trips = 40;
    constexpr int largeTrips = 6;
    constexpr std::size_t large = std::size_t{1} << 20;
    std::vector<char> bytes(large);
    const double small = pingPong(comm, peer, first, std::span(bytes).first(8), trips);
    const double whole = pingPong(comm, peer, first, bytes, largeTrips);
    return {{"latency_us", 0.5e6 * small}, {"megabytes_per_s", 2e-6 * static_cast<double>(large) / whole}};
}

constexpr int maxForAllPairs = 16; ///< ranks; of more, each measures with the next one and with one far away

/// Pairs of `comm`, one after another; what this rank began.
void measureAll(const CommunicatorView &comm, std::span<const int> worldRanks, bool sameMachine, bool neighboursOnly,
                Json &into) {
    const int me = comm.rank();
    for (int a = 0; a < comm.size(); ++a)
        for (int b = a + 1; b < comm.size(); ++b) {
            const bool few = comm.size() <= maxForAllPairs || b == a + comm.size() / 2;
            if (b != a + 1 && (neighboursOnly || !few))
                continue;
            if (me == a || me == b) {
                const Json pair = measurePair(comm, me == a ? b : a, me == a);
                if (me == a)
                    into.push_back({{"from", worldRanks[static_cast<std::size_t>(a)]},
                                    {"to", worldRanks[static_cast<std::size_t>(b)]},
                                    {"latency_us", pair["latency_us"]},
                                    {"megabytes_per_s", pair["megabytes_per_s"]},
                                    {"same_machine", sameMachine}});
            }
            comm.barrier();
        }
}

using Field = ArrayPair<ParArray<real, 5>>;
constexpr index rowsOfRank = 4096;
constexpr index ghostsOfNeighbour = 256;

/// The next rank and the one before, in ascending order.
std::set<int> neighboursOf(const CommunicatorView &world) {
    std::set<int> neighbours{(world.rank() + 1) % world.size(), (world.rank() + world.size() - 1) % world.size()};
    neighbours.erase(world.rank());
    return neighbours;
}

/// The rows that neighbours read, in ascending order.
index readRow(index k) { return k * 7; }
static_assert(7 * ghostsOfNeighbour <= rowsOfRank);

Field ringField(const CommunicatorView &world) {
    Field field;
    field.initPair("ring", world.handle());
    field.father->resize(rowsOfRank);
    field.transAttach();
    field.trans.createFatherGlobalMapping();
    std::vector<index> wanted;
    for (const int neighbour : neighboursOf(world))
        for (index k = 0; k < ghostsOfNeighbour; ++k)
            wanted.push_back(neighbour * rowsOfRank + readRow(k));
    field.trans.createGhostMapping(wanted);
    field.trans.createMPITypes();
    auto father = field.father->view();
    for (index row = 0; row < father.size(); ++row)
        for (rowsize j = 0; j < 5; ++j)
            father(row, j) = static_cast<real>((world.rank() * rowsOfRank + row) * 5 + j);
    return field;
}

index wrongGhosts(const Field &field) {
    const auto ghosts = field.trans.ghostMapping()->ghosts();
    const auto son = std::as_const(*field.son).view();
    index wrong = 0;
    for (index row = 0; row < son.size(); ++row)
        for (rowsize j = 0; j < 5; ++j)
            wrong += son(row, j) == static_cast<real>(ghosts[static_cast<std::size_t>(row)] * 5 + j) ? 0 : 1;
    return wrong;
}

/// The same pull as one would write it: rows are copied to a buffer, persistent messages bring them into the ghosts.
class PullByHand {
  public:
    PullByHand(const CommunicatorView &world, Field &field) : rows_(*field.father), buffer_(ghostsOfNeighbour * 5) {
        constexpr int count = static_cast<int>(ghostsOfNeighbour) * 5;
        auto son = field.son->view();
        index ghost = 0; // sorted by owner, as neighbours are
        for (const int peer : neighboursOf(world)) {
            checkMpi(
                MPI_Recv_init(&son(ghost, 0), count, MPI_DOUBLE, peer, 2, world.handle(), &requests_.emplace_back()),
                "MPI_Recv_init");
            checkMpi(
                MPI_Send_init(buffer_.data(), count, MPI_DOUBLE, peer, 2, world.handle(), &requests_.emplace_back()),
                "MPI_Send_init");
            ghost += ghostsOfNeighbour;
        }
    }
    PullByHand(const PullByHand &) = delete;
    PullByHand &operator=(const PullByHand &) = delete;
    ~PullByHand() {
        for (MPI_Request &request : requests_)
            MPI_Request_free(&request);
    }

    void operator()() {
        const auto rows = rows_.view();
        real *to = buffer_.data();
        for (index k = 0; k < ghostsOfNeighbour; ++k)
            for (rowsize j = 0; j < 5; ++j)
                *to++ = rows(readRow(k), j);
        const auto count = static_cast<int>(requests_.size());
        if (count == 0)
            return;
        checkMpi(MPI_Startall(count, requests_.data()), "MPI_Startall");
        checkMpi(MPI_Waitall(count, requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }

  private:
    const ParArray<real, 5> &rows_;
    std::vector<real> buffer_;
    std::vector<MPI_Request> requests_;
};

/// The median of runs on the slowest rank, in microseconds. Collective.
double medianOf(const CommunicatorView &world, std::vector<double> &seconds) {
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::ranges::nth_element(seconds, middle);
    return 1e6 * world.allReduce(*middle, MPI_MAX);
}

Json measurePull(const CommunicatorView &world, TransportKind kind, bool onDevice) {
    Field field = ringField(world);
    if (onDevice)
        field.toDevice();
    field.trans.initPersistentPull({.transport = kind});
    std::vector<double> seconds, byHand;
    const auto time = [](std::vector<double> &into, auto &&body) {
        const double begin = monotonicSeconds();
        body();
        into.push_back(monotonicSeconds() - begin);
    };
    const auto pull = [&] {
        field.trans.startPersistentPull();
        field.trans.waitPersistentPull();
    };
    Json result;
    index wrong = 0;
    if (onDevice) {
        for (int run = 0; run < 31; ++run)
            time(seconds, pull);
        field.toHost();
    } else {
        PullByHand hand(world, field);
        for (int run = 0; run < 301; ++run) { // in turns: what else the machine does meets both
            time(byHand, hand);
            time(seconds, pull);
        }
        hand();
        wrong = wrongGhosts(field);
        pull();
        result["by_hand_microseconds"] = medianOf(world, byHand);
    }
    std::set<std::string> used;
    for (const PeerPath &path : field.trans.pullPaths())
        used.insert(path.name);
    std::set<std::string> all;
    for (const Json &names : gather(world, used))
        for (const Json &name : names)
            all.insert(name.get<std::string>());
    result.update({{"microseconds", medianOf(world, seconds)},
                   {"paths", all},
                   {"wrong", world.allReduce(wrong + wrongGhosts(field), MPI_SUM)},
                   {"error", nullptr}});
    return result;
}

} // namespace

Json measurePairs(CommunicatorView world) {
    const Communicator machine = Communicator::splitNode(world);
    const Communicator firsts =
        Communicator::split(world, machine.view().rank() == 0 ? 0 : MPI_UNDEFINED, world.rank());
    Json mine = Json::array();
    const auto measure = [&](const Communicator &comm, bool sameMachine) {
        if (comm.valid())
            measureAll(comm.view(), comm.view().allGather(world.rank()), sameMachine, !sameMachine, mine);
        world.barrier();
    };
    measure(machine, true);
    measure(firsts, false);
    Json all = Json::array();
    for (const Json &list : gather(world, mine))
        for (const Json &pair : list)
            all.push_back(pair);
    return all;
}

Json measurePulls(CommunicatorView world) {
    Json list = Json::array();
    std::vector<std::pair<TransportKind, bool>> kinds{
        {TransportKind::Datatype, false}, {TransportKind::Packed, false}, {TransportKind::NodeShared, false}};
    if (world.allReduce(Device::available() ? 1 : 0, MPI_MIN) == 1)
        for (const TransportKind kind : {TransportKind::Staged, TransportKind::Direct, TransportKind::Peer})
            kinds.emplace_back(kind, true);
    for (const auto &[kind, onDevice] : kinds) {
        Json pull{{"transport", transportName(kind)}, {"device", onDevice}};
        try {
            pull.update(measurePull(world, kind, onDevice)); // what set-up throws is thrown on all ranks
        } catch (const Error &error) {
            pull.update(Json{{"microseconds", nullptr}, {"paths", nullptr}, {"wrong", 0}, {"error", error.what()}});
        }
        list.push_back(pull);
    }
    return list;
}

} // namespace DNDS::Doctor
