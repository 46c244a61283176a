// Sparse fields on the device: the same blocks, bits and counts as on the host.

#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Mpi/ThrowsOnAll.hpp"
#include "DNDS/Sparse/DevicePath.hpp"
#include "DNDS/Sparse/ObjectPool.hpp"
#include "DNDS/Sparse/SparseCase.hpp"
#include "support/ScopedVariable.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS::test {
namespace {

CommunicatorView world() { return {MPI_COMM_WORLD}; }

/// By each way of messages between devices.
class SparseOnDevice : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override {
        if (!Device::available())
            GTEST_SKIP() << Device::unavailableReason();
        owner = Communicator::duplicate(MPI_COMM_WORLD);
        if (const auto whyNot = whyNotBy(GetParam(), world()))
            GTEST_SKIP() << *whyNot;
    }
    static bool is(std::string_view name) { return GetParam() == name; }
    CommunicatorView world() const { return owner.view(); }

    const ScopedVariable transport{"DNDS_TRANSPORT", GetParam()};
    const ScopedVariable pretend{"DNDS_EMULATED_DEVICE", "gpu-aware-mpi"};
    Communicator owner;
};

/// Values around the thresholds, which are 0.5 and 0.25 or so, and now and then something wild.
template <class T>
T valueOf(T background, std::uint64_t draw) {
    if (draw % 16 < 12)
        return background;
    if constexpr (std::is_floating_point_v<T>) {
        if (draw % 97 == 0)
            return std::numeric_limits<T>::quiet_NaN();
        return background + static_cast<T>(0.125) * static_cast<T>(draw % 7);
    } else {
        return static_cast<T>(background + static_cast<T>(draw % 7));
    }
}

template <class T>
void fillAlike(SparseField<T> &a, SparseField<T> &b, std::uint64_t round) {
    for (int k = 0; k < a.blocks(); ++k) {
        const auto number = static_cast<std::uint64_t>(a.block(k).block);
        const std::uint64_t draw = drawn(8, {number, round});
        if (draw == 1) {
            a.free(k);
            b.free(k);
        }
        if (draw != 0)
            continue;
        const bool belowThreshold = drawn(2, {number, round, 1}) == 0; // nearly nothing
        a.allocate(k);
        b.allocate(k);
        for (auto *field : {&a, &b}) {
            const auto v = field->view(k);
            for (index n = 0; n < v.size(); ++n)
                for (rowsize c = 0; c < v.components(); ++c) {
                    index offset = c;
                    for (int d = 0; d < v.dims(); ++d)
                        offset += v.indexOf(n, d) * v.stride(d);
                    const std::uint64_t one =
                        drawn(1000, {number, round, static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(c)});
                    v.data()[offset] = valueOf(field->defaultValue(), belowThreshold ? one % 12 : one);
                }
        }
    }
}

template <class T>
void expectSame(const SparseField<T> &host, SparseField<T> &device) {
    ASSERT_EQ(device.allocatedBlocks(), host.allocatedBlocks()) << host.name();
    device.toHost();
    for (const int b : host.allocatedBlocks()) {
        EXPECT_TRUE(sameBits(elementsOf(std::as_const(device).view(b)), elementsOf(host.view(b))))
            << host.name() << ", block " << host.block(b).block;
        EXPECT_EQ(device.emptyExchanges(b), host.emptyExchanges(b));
    }
}

void exchangeInSteps(SparseFields &fields, std::uint64_t round) {
    if (round % 3 == 0)
        return fields.exchangeGhosts();
    const BoundaryType first = round % 3 == 1 ? BoundaryType::Local : BoundaryType::NonLocal;
    const BoundaryType last = round % 3 == 1 ? BoundaryType::NonLocal : BoundaryType::Local;
    fields.sendBoundBufs(first);
    fields.sendBoundBufs(last);
    while (!fields.receiveBoundBufs()) {
    }
    fields.setBounds(first);
    fields.setBounds(last);
}

/// One species of each kind of element, all in one exchange.
struct Species {
    SparseField<real> dust;
    SparseField<float> ice;
    SparseField<std::int8_t> small;
    SparseField<std::uint64_t> large;

    Species(const std::string &where, const std::shared_ptr<const SparsePattern> &pattern, bool sendBelowThreshold)
        : dust(where + " dust", pattern, options(2, 0.5, 0.25, sendBelowThreshold), 0.1),
          ice(where + " ice", pattern, options(3, 0.25, 0.125, sendBelowThreshold), -2.5F),
          small(where + " small", pattern, options(5, 2, 1, sendBelowThreshold), std::int8_t{-7}),
          large(where + " large", pattern, options(1, 0, 0, sendBelowThreshold), std::uint64_t{1} << 62U) {}
    static SparseFieldOptions options(rowsize components, real allocation, real deallocation, bool sendBelowThreshold) {
        return {.components = components,
                .stages = 2,
                .allocationThreshold = allocation,
                .deallocationThreshold = deallocation,
                .deallocationCount = 2,
                .sendBelowThreshold = sendBelowThreshold};
    }
    std::vector<SparseFieldCore *> all() { return {&dust, &ice, &small, &large}; }
    void toDevice() {
        for (SparseFieldCore *field : all())
            field->toDevice();
    }
};

TEST_P(SparseOnDevice, DecidesAndSendsWhatTheHostDoes) {
    for (const SparseGrid &grid : sparseGrids())
        for (const bool sendBelowThreshold : {true, false}) {
            SCOPED_TRACE(testing::Message()
                         << grid.name << (sendBelowThreshold ? "" : ", without rims below the threshold"));
            const auto pattern = SparsePattern::make(world(), grid.on(world()), grid.ghosts);
            Species host("host", pattern, sendBelowThreshold);
            Species device("device", pattern, sendBelowThreshold);
            SparseFields ofHost("host", host.all());
            SparseFields ofDevice("device", device.all());
            for (std::uint64_t round = 0; round < 6; ++round) {
                SCOPED_TRACE(round);
                fillAlike(host.dust, device.dust, round);
                fillAlike(host.ice, device.ice, round + 100);
                fillAlike(host.small, device.small, round + 200);
                fillAlike(host.large, device.large, round + 300);
                device.toDevice();
                exchangeInSteps(ofHost, round);
                exchangeInSteps(ofDevice, round);
                expectSame(host.dust, device.dust);
                expectSame(host.ice, device.ice);
                expectSame(host.small, device.small);
                expectSame(host.large, device.large);
                host.dust.swapStages(0, 1);
                device.dust.swapStages(0, 1);
            }
            EXPECT_EQ(ofDevice.traffic().bytes, ofHost.traffic().bytes);
            EXPECT_EQ(ofDevice.traffic().rims, ofHost.traffic().rims);
            EXPECT_EQ(ofDevice.traffic().withheld, ofHost.traffic().withheld);
        }
}

const SparseGrid torus{"torus", {{"torus", Box({0, 0}, {24, 16}), {true, true}}}, {5, 4}, {1, 1}};

TEST_P(SparseOnDevice, FieldsMoveToOtherRanks) {
    for (const SparseGrid &grid : sparseGrids()) {
        SCOPED_TRACE(grid.name);
        auto pattern = SparsePattern::make(world(), grid.on(world()), grid.ghosts);
        const auto options = Species::options(2, 0.5, 0.25, true);
        SparseField<real> host("host", pattern, options, 0.1);
        SparseField<real> device("device", pattern, options, 0.1);
        for (std::uint64_t round = 0; round < 4; ++round) {
            fillAlike(host, device, round);
            device.toDevice();
            host.exchangeGhosts();
            device.exchangeGhosts();
            std::vector<real> costs;
            for (int b = 0; b < host.blocks(); ++b)
                costs.push_back(host.isAllocated(b) ? 1 : 0);
            pattern = SparsePattern::make(world(), pattern->grid()->rebalanced(world(), costs), grid.ghosts);
            host = host.moved(pattern);
            device = device.moved(pattern);
            EXPECT_EQ(device.space(), MemorySpace::Device);
            expectSame(host, device);
        }
    }
}

TEST_P(SparseOnDevice, BlocksThatArriveHaveTheDefaultElsewhere) {
    SparseField<real> u("u", SparsePattern::make(world(), torus.on(world()), torus.ghosts), {.components = 2}, 3.5);
    if (const int first = u.pattern()->localOf(0); first >= 0) {
        u.allocate(first);
        const auto v = u.view(first);
        for (index n = 0; n < v.size(); ++n)
            v(v.indexOf(n, 0), v.indexOf(n, 1), 1) = 7;
    }
    u.toDevice();
    u.exchangeGhosts();
    EXPECT_EQ(world().allReduce(static_cast<int>(u.allocatedBlocks().size()), MPI_SUM), 9);
    u.toHost();
    for (const int b : u.allocatedBlocks())
        if (u.block(b).block != 0) {
            const auto v = std::as_const(u).view(b);
            for (index n = 0; n < v.size(); ++n)
                for (rowsize c = 0; c < 2; ++c)
                    EXPECT_EQ(v(v.indexOf(n, 0), v.indexOf(n, 1), c), 3.5);
        }
}

TEST_P(SparseOnDevice, FieldsOfOneExchangeAreInOneSpace) {
    const auto pattern = SparsePattern::make(world(), torus.on(world()), torus.ghosts);
    SparseField<real> u("u", pattern);
    SparseField<real> v("v", pattern);
    SparseFields both("both", {&u, &v});
    v.toDevice();
    expectContains(messageOf<Error>([&] { both.exchangeGhosts(); }), "'u' is on the host, and 'v' is not");
    recover(world());
    u.toDevice();
    both.exchangeGhosts();
    both.startExchangeGhosts();
    expectContains(messageOf<StateError>([&] { u.toHost(); }), "cannot be moved during an exchange");
    both.finishExchangeGhosts();
}

TEST_P(SparseOnDevice, MemoryThatEndsIsRecoveredFrom) {
    const auto pattern = SparsePattern::make(world(), torus.on(world()), torus.ghosts);
    SparseField<real> u("u", pattern);
    const bool mine = u.pattern()->localOf(0) >= 0;
    if (mine) {
        const int first = u.pattern()->localOf(0);
        u.allocate(first);
        u.view(first)(0, 0) = 1;
    }
    u.toDevice();
    const std::size_t before = u.memoryBytes();
    pattern->pool().setLimit(before); // nothing more
    try {
        u.exchangeGhosts();
    } catch (const Error &error) { // MemoryError or, where others were first, RevokedError
        expectContains(error.what(), "has a limit of");
    }
    EXPECT_EQ(u.memoryBytes(), before);
    world().barrier();
    pattern->pool().setLimit(std::numeric_limits<std::size_t>::max());
    recover(world());
    u.exchangeGhosts();
    EXPECT_EQ(world().allReduce(static_cast<int>(u.allocatedBlocks().size()), MPI_SUM), 4); // a corner reaches three
}

/// Eight blocks in a ring, with rims of 512 cells.
const SparseGrid ring{"ring", {{"ring", Box({0, 0}, {4 * 8, 256}), {true, true}}}, {4, 256}, {2, 2}};

void fill(SparseField<real> &field, real first) {
    for (int b = 0; b < field.blocks(); ++b) {
        field.allocate(b);
        const auto v = field.view(b);
        for (index n = 0; n < v.size(); ++n)
            for (rowsize c = 0; c < v.components(); ++c)
                v(v.indexOf(n, 0), v.indexOf(n, 1), c) =
                    first + static_cast<real>(field.block(b).block * 100'000 + n * 16 + c);
    }
}

TEST_P(SparseOnDevice, CopiesOfMessagesPassTheHostWhereItSaysSo) {
    SparseField<real> u("u", SparsePattern::make(world(), ring.on(world()), ring.ghosts), {.components = 12});
    fill(u, 1);
    u.toDevice();
    SparseFields &exchange = u.exchange();
    const std::string paths = exchange.describe();
    expectContains(paths, "exchange of 'u' on the device");
    const auto count = [&](std::string_view way) {
        std::size_t found = 0;
        for (std::size_t at = 0; (at = paths.find("  " + std::string(way) + ' ', at)) != std::string::npos; ++at)
            ++found;
        return found;
    };
    const std::size_t peers = u.pattern()->peers().size();
    EXPECT_EQ(count("peer") + count("direct") + count("staged"), peers + 1) << paths; // "peer" heads a column
    std::size_t onNode = 0;
    for (const PeerChannels &peer : u.pattern()->peers())
        onNode += u.pattern()->context()->node().sameNode(peer.rank) ? 1U : 0U;
    EXPECT_EQ(count("peer"), 1 + (is("peer") ? onNode : 0)) << paths;
    EXPECT_EQ(count("staged"), is("staged") ? peers : 0) << paths;
    const auto before = Device::transfers();
    exchange.exchangeGhosts();
    const std::size_t copied = Device::transfers().bytesToDevice - before.bytesToDevice;
    const auto sent = static_cast<std::size_t>(exchange.traffic().bytes); // as much comes
    EXPECT_TRUE(peers == 0 || (is("staged") ? copied >= sent : copied < sent / 4)) << copied << " of " << sent;
}

/// Messages of any size, none included, one after another; buffers grow and shrink.
TEST_P(SparseOnDevice, MessagesGrowShrinkAndVanish) {
    const auto pattern = SparsePattern::make(world(), ring.on(world()), ring.ghosts);
    const auto make = [&](const char *name, rowsize components) {
        return SparseField<real>(name, pattern,
                                 {.components = components, .allocationThreshold = 1e300, .deallocationCount = 0});
    };
    for (int object = 0; object < 3; ++object) {
        SparseField<real> host[] = {make("wide on the host", 12), make("narrow on the host", 1)};
        SparseField<real> device[] = {make("wide", 12), make("narrow", 1)};
        SparseFields ofHost("host", {&host[0], &host[1]});
        SparseFields ofDevice("device", {&device[0], &device[1]});
        for (std::uint64_t round = 0; round < 12; ++round) {
            SCOPED_TRACE(round);
            for (std::uint64_t f = 0; f < 2; ++f)
                for (int b = 0; b < host[f].blocks(); ++b) {
                    const auto number = static_cast<std::uint64_t>(host[f].block(b).block);
                    const bool there = drawn(4, {number, round, f}) < (round + f) % 4;
                    for (auto *field : {&host[f], &device[f]}) {
                        there ? field->allocate(b) : field->free(b);
                        if (there)
                            field->view(b)(0, 0) = field->view(b)(3, 255) = static_cast<real>(number + round);
                    }
                }
            for (auto &field : device)
                field.toDevice();
            ofHost.exchangeGhosts();
            ofDevice.exchangeGhosts();
            for (int f = 0; f < 2; ++f)
                expectSame(host[f], device[f]);
        }
    }
    world().barrier();
    pattern->context()->progressParked();
    EXPECT_FALSE(pattern->context()->hasParked());
}

TEST_P(SparseOnDevice, RanksWhoseFieldsAreOnTheHostThrow) {
    const auto pattern = SparsePattern::make(world(), torus.on(world()), torus.ghosts);
    SparseField<real> u("u", pattern);
    fill(u, 1);
    SparseFields exchange(u);
    if (world().rank() > 0)
        u.toDevice();
    bool apart = false; // some rank sends device memory to rank 0
    for (const PeerChannels &peer : pattern->peers())
        apart = apart || ((peer.rank == 0 || world().rank() == 0) && !is("staged") &&
                          (is("direct") || pattern->context()->node().sameNode(peer.rank)));
    if (world().allReduce(apart ? 1 : 0, MPI_MAX) == 0) {
        exchange.exchangeGhosts();
    } else {
        const std::string why = messageOf<Error>([&] {
            for (;;) // the others may go ahead by one exchange
                exchange.exchangeGhosts();
        });
        expectContains(why, "from its device, and those of this rank are on the host");
        recover(world());
    }
    u.toDevice();
    exchange.exchangeGhosts();
    SparseField<real> expected("expected", pattern);
    fill(expected, 1);
    expected.exchangeGhosts();
    expectSame(expected, u);
}

INSTANTIATE_TEST_SUITE_P(Paths, SparseOnDevice, testing::Values("staged", "direct", "peer"));

TEST(SparseOnDeviceByRequest, ThrowsWhereThePathIsImpossible) {
    if (!Device::available() || world().size() == 1)
        GTEST_SKIP() << "no device, or no peer";
    const ScopedVariable transport("DNDS_TRANSPORT", "direct");
    const ScopedVariable refused("DNDS_DISABLE_GPU_AWARE_MPI", "1");
    const Communicator owner = Communicator::duplicate(MPI_COMM_WORLD);
    SparseField<real> u("u", SparsePattern::make(owner.view(), torus.on(owner.view()), torus.ghosts));
    fill(u, 1);
    u.exchangeGhosts(); // on the host it is not asked for
    u.toDevice();
    world().barrier(); // the error stops ranks that are still in the first exchange
    if (!u.pattern()->peers().empty())
        expectContains(messageOf<Error>([&] { u.exchangeGhosts(); }), "the direct transport is asked for");
}

/// Elements of a pool of views.
struct Cells {
    const double *at = nullptr;
    int count = 0;
};

/// nvcc compiles this for the device, too: handles are copied, assigned and ended there.
DNDS_HOST_DEVICE double lastOf(ObjectPool<Cells>::Owner owner, const ObjectPool<Cells>::Weak &weak) {
    ObjectPool<Cells>::Owner other;
    other = owner;
    const ObjectPool<Cells>::Weak same = weak;
    const Cells &cells = same;
    return other.at[cells.count - 1];
}

TEST(ObjectPool, HandlesOfViewsExistInDeviceCode) {
    const double values[] = {1, 2, 3};
    ObjectPool<Cells> pool("cells", [&](std::size_t count) { return Cells{values, static_cast<int>(count)}; });
    const auto owner = pool.get(3);
    EXPECT_EQ(lastOf(owner, owner.weak()), 3);
    EXPECT_EQ(owner.useCount(), 1U);
}

} // namespace
} // namespace DNDS::test
