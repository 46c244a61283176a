#include "Measure.hpp"

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Mpi/ClockOffset.hpp"

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

constexpr int mostForAllPairs = 16; ///< ranks; of more, each measures with the next one and with one far away

/// Pairs of `comm`, one after another; what this rank began.
void measureAll(const CommunicatorView &comm, std::span<const int> worldRanks, bool sameMachine, bool neighboursOnly,
                Json &into) {
    const int me = comm.rank();
    for (int a = 0; a < comm.size(); ++a)
        for (int b = a + 1; b < comm.size(); ++b) {
            const bool few = comm.size() <= mostForAllPairs || b == a + comm.size() / 2;
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

Field ringField(const CommunicatorView &world) {
    Field field;
    field.initPair("ring", world.handle());
    field.father->resize(rowsOfRank);
    field.transAttach();
    field.trans.createFatherGlobalMapping();
    std::vector<index> wanted;
    for (const int step : {-1, 1}) {
        const index neighbour = (world.rank() + step + world.size()) % world.size();
        for (index k = 0; k < ghostsOfNeighbour && neighbour != world.rank(); ++k)
            wanted.push_back(neighbour * rowsOfRank + k * 7 % rowsOfRank);
    }
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

Json measurePull(const CommunicatorView &world, TransportKind kind, bool onDevice) {
    Field field = ringField(world);
    if (onDevice)
        field.toDevice();
    field.trans.initPersistentPull({.transport = kind});
    constexpr int pulls = 31;
    std::vector<double> seconds;
    for (int run = 0; run < pulls; ++run) {
        const double begin = monotonicSeconds();
        field.trans.startPersistentPull();
        field.trans.waitPersistentPull();
        seconds.push_back(monotonicSeconds() - begin);
    }
    std::ranges::nth_element(seconds, seconds.begin() + pulls / 2);
    if (onDevice)
        field.toHost();
    std::set<std::string> used;
    for (const PeerPath &path : field.trans.pullPaths())
        used.insert(path.name);
    std::set<std::string> all;
    for (const Json &names : gather(world, used))
        for (const Json &name : names)
            all.insert(name.get<std::string>());
    return {{"microseconds", 1e6 * world.allReduce(seconds[pulls / 2], MPI_MAX)},
            {"paths", all},
            {"wrong", world.allReduce(wrongGhosts(field), MPI_SUM)},
            {"error", nullptr}};
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
