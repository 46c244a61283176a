// Random sequences of operations on sparse fields on random blocks, on the host and by each way of messages between
// devices, beside a model of plain arrays without messages: equal to the bit after each of them.

#include "DNDS/Sparse/DevicePath.hpp"
#include "DNDS/Sparse/ReplicatedSparse.hpp"
#include "DNDS/Sparse/SparseReductions.hpp"
#include "support/RandomCases.hpp"
#include "support/ScopedVariable.hpp"

#include <optional>
#include <string_view>

namespace DNDS::test {
namespace {

/// A field and its model.
template <class T>
struct Modelled {
    ReplicatedSparse<T> model;
    SparseField<T> field;
    std::optional<DroppedSums<T>> dropped;

    Modelled(const char *name, const std::shared_ptr<const ReplicatedGrid> &grid,
             const std::shared_ptr<const SparsePattern> &pattern, const SparseFieldOptions &options, T background)
        : model(grid, options, background), field(name, pattern, options, background) {}

    void draw(std::uint64_t salt, bool all = false) { load(field, model, model.draw(salt, all)); }
    /// Draws new contents for all blocks, as after a failure.
    void reset(std::uint64_t salt) {
        for (int b = 0; b < field.blocks(); ++b)
            field.free(b);
        dropped.emplace(field);
        model.reset();
        draw(salt, true);
    }
    void move(const std::shared_ptr<const SparsePattern> &to) {
        field = field.moved(to);
        dropped->follow(field);
    }
    /// Collective. Sums of real numbers are rounded in another way than the model's.
    std::string lossDifference() const {
        real sum = 0;
        for (const real component : dropped->sums())
            sum += component;
        const bool exact = std::is_integral_v<T>;
        if (exact ? sum == model.dropped() : std::fabs(sum - model.dropped()) <= 1e-12 * model.droppedSizes())
            return {};
        return fmt::format("'{}' has lost {}, not {}", field.name(), sum, model.dropped());
    }
};

/// Three fields in two exchanges on one pattern.
class SparseRun {
  public:
    SparseRun(std::uint64_t number, const CommunicatorView &comm, bool hasDevice)
        : comm_(comm), hasDevice_(hasDevice), random_(number), log_(number) {
        const int dims = 1 + static_cast<int>(random_() % 3);
        const bool holes = random_() % 4 == 0;
        while (grid_ == nullptr || grid_->blocks().empty())
            grid_ = randomGrid(dims, holes, random_);
        widths_ = randomWidths(dims, random_);
        pushes_ = random_() % 3 != 0;
        log_.note("ghosts [{}]-[{}] {}, {}\n{}", fmt::join(widths_.low, " "), fmt::join(widths_.high, " "),
                  widths_.shape == GhostShape::Star ? "star" : "box", pushes_ ? "default 0" : "other defaults",
                  grid_->describe());
        const auto points =
            std::make_shared<const ReplicatedGrid>(grid_, widths_, Centring{}, moduloPeriods(grid_->spaces()[0]));
        const auto pattern = SparsePattern::make(comm_, grid_, widths_);
        a_.emplace("a", points, pattern, options(), pushes_ ? 0.0 : 0.25);
        b_.emplace("b", points, pattern, options(), pushes_ ? 0.0F : -2.0F);
        c_.emplace("c", points, pattern, options(), static_cast<std::int8_t>(pushes_ ? 0 : 3));
        connect();
        forAll([&](auto &one) { one.reset(random_()); });
    }

    /// Returns false at the first difference, on all ranks.
    bool run() {
        constexpr std::array operations{
            std::pair{"exchange", &SparseRun::exchange}, std::pair{"exchange", &SparseRun::exchange},
            std::pair{"exchange", &SparseRun::exchange}, std::pair{"push", &SparseRun::push},
            std::pair{"push", &SparseRun::push},         std::pair{"draw", &SparseRun::draw},
            std::pair{"move", &SparseRun::move},         std::pair{"swap", &SparseRun::swap},
            std::pair{"fail", &SparseRun::fail}};
        for (int step = 0; step < 14; ++step) {
            const auto &[name, operation] = operations[random_() % operations.size()];
            log_.note("\n{}: {}", step, name);
            (this->*operation)();
            if ((random_() % 2 == 0 || step == 13) && !agrees(step == 13))
                return false;
        }
        return true;
    }
    const RandomLog &log() const { return log_; }

  private:
    SparseFieldOptions options() {
        const real threshold = std::array{0.0, 0.0, 0.5, 1.5, 1e300}[random_() % 5];
        SparseFieldOptions options{.components = static_cast<rowsize>(1 + random_() % 3), .stages = 2};
        options.allocationThreshold = threshold;
        options.deallocationThreshold = random_() % 2 == 0 ? threshold : threshold / 4;
        options.deallocationCount = static_cast<int>(random_() % 4);
        options.sendBelowThreshold = random_() % 3 != 0;
        log_.note("\nthresholds {} {}, count {}, {} components, {}", threshold, options.deallocationThreshold,
                  options.deallocationCount, options.components, options.sendBelowThreshold ? "sends all" : "");
        return options;
    }
    template <class Visit>
    void forAll(const Visit &visit) {
        visit(*a_);
        visit(*b_);
        visit(*c_);
    }
    void connect() {
        one_ = std::make_unique<SparseFields>("one", std::initializer_list<SparseFieldCore *>{&a_->field, &c_->field});
        two_ = std::make_unique<SparseFields>("two", std::initializer_list<SparseFieldCore *>{&b_->field});
    }
    /// All fields are on the device or on the host.
    void goAnywhere() {
        const bool away = random_() % 6 != 0 && hasDevice_;
        forAll([&](auto &one) { away ? one.field.toDevice() : one.field.toHost(); });
        log_.note(" on the {}", away ? "device" : "host");
    }
    void comeHome() {
        forAll([](auto &one) { one.field.toHost(); });
    }

    /// One exchange, or both at once, in different orders of their steps.
    void exchange() {
        goAnywhere();
        const auto way = random_() % 4;
        log_.note(" way {}", way);
        SparseFields &one = *one_, &two = *two_;
        if (way == 0) {
            one.exchangeGhosts();
        } else if (way == 1) {
            one.startExchangeGhosts();
            two.startExchangeGhosts();
            two.finishExchangeGhosts();
            one.finishExchangeGhosts();
        } else if (way == 2) {
            two.sendBoundBufs(BoundaryType::NonLocal);
            one.sendBoundBufs(BoundaryType::Local);
            one.sendBoundBufs(BoundaryType::NonLocal);
            two.sendBoundBufs(BoundaryType::Local);
            while (!one.receiveBoundBufs()) {
            }
            one.setBounds(BoundaryType::NonLocal);
            while (!two.receiveBoundBufs()) {
            }
            two.setBounds();
            one.setBounds(BoundaryType::Local);
        } else {
            one.sendBoundBufs();
            one.setBounds(BoundaryType::Local);
            two.exchangeGhosts();
            while (!one.receiveBoundBufs(BoundaryType::NonLocal)) {
            }
            one.setBounds(BoundaryType::NonLocal);
        }
        a_->model.exchange();
        c_->model.exchange();
        if (way != 0)
            b_->model.exchange();
    }
    void push() {
        if (!pushes_)
            return;
        if (random_() % 2 == 0) { // several deposits for one cell, whose order matters
            comeHome();
            forAll([&](auto &one) { one.draw(random_(), true); });
        }
        goAnywhere();
        if (random_() % 3 == 0)
            forAll([](auto &one) {
                one.field.clearGhosts();
                one.model.clearGhosts();
            });
        if (!a_->model.canPush() || !b_->model.canPush() || !c_->model.canPush())
            return log_.note(" skipped");
        const bool together = random_() % 2 == 0;
        one_->startPushGhosts();
        if (together) {
            two_->pushGhosts();
            b_->model.push();
        }
        one_->finishPushGhosts();
        a_->model.push();
        c_->model.push();
    }
    void draw() {
        comeHome();
        forAll([&](auto &one) { one.draw(random_()); });
    }
    void move() {
        std::vector<Block> blocks = grid_->blocks();
        for (Block &block : blocks)
            block.rank = static_cast<int>(random_() % toSize(comm_.size()));
        grid_ = BlockGrid::make(grid_->spaces(), blocks, grid_->connections());
        const auto pattern = SparsePattern::make(comm_, grid_, widths_);
        forAll([&](auto &one) { one.move(pattern); });
        connect();
    }
    void swap() {
        forAll([&](auto &one) {
            if (random_() % 2 == 0)
                return;
            one.field.swapStages(0, 1);
            one.model.swapStages();
        });
    }
    /// One rank abandons an exchange; all recover and draw new contents.
    void fail() {
        goAnywhere();
        const auto culprit = static_cast<int>(random_() % toSize(comm_.size()));
        const auto when = random_() % 3;
        const bool push = pushes_ && random_() % 2 == 0;
        if (comm_.size() == 1) // is never revoked
            return;
        MPI_Barrier(MPI_COMM_WORLD); // no rank fails while others are in an earlier exchange
        try {
            for (std::uint64_t k = 0; k < 3; ++k) {
                push ? one_->startPushGhosts() : one_->startExchangeGhosts();
                if (comm_.rank() == culprit && k == when) {
                    one_->abandon();
                    break;
                }
                push ? one_->finishPushGhosts() : one_->finishExchangeGhosts();
                two_->exchangeGhosts();
            }
        } catch (const Error &) { // on all ranks in the end, which need not be in the same call
        }
        recoverTogether(comm_);
        comeHome();
        forAll([&](auto &one) { one.reset(random_()); });
    }

    /// Compares all fields with their models; sums only if `losses`. Collective.
    bool agrees(bool losses) {
        const bool away = a_->field.space() == MemorySpace::Device;
        comeHome();
        std::string first;
        forAll([&](const auto &one) {
            const std::string here = difference(one.field, one.model);
            const std::string loss = losses ? one.lossDifference() : std::string();
            if (first.empty())
                first = here.empty() ? loss : here;
        });
        forAll([&](auto &one) { away ? one.field.toDevice() : one.field.toHost(); });
        if (!first.empty())
            ADD_FAILURE() << "on rank " << comm_.rank() << ' ' << first << '\n' << log_.text();
        return comm_.allReduce(first.empty() ? 0 : 1, MPI_MAX) == 0;
    }

    CommunicatorView comm_;
    bool hasDevice_;
    Random random_;
    RandomLog log_;
    std::shared_ptr<const BlockGrid> grid_;
    GhostWidths widths_;
    bool pushes_ = false; ///< defaults are 0
    std::optional<Modelled<real>> a_;
    std::optional<Modelled<float>> b_;
    std::optional<Modelled<std::int8_t>> c_;
    std::unique_ptr<SparseFields> one_, two_; ///< exchanges of a and c, and of b
};

/// On the host, and on the device by each way of messages there.
class RandomSparseOperations : public testing::TestWithParam<const char *> {};

TEST_P(RandomSparseOperations, GiveTheBitsOfPlainArrays) {
    const bool hasDevice = GetParam() != std::string_view("host");
    if (hasDevice && !Device::available())
        GTEST_SKIP() << Device::unavailableReason();
    const ScopedVariable pretend{"DNDS_EMULATED_DEVICE", "gpu-aware-mpi"};
    const ScopedVariable transport{"DNDS_TRANSPORT", hasDevice ? GetParam() : "auto"};
    const Communicator owner = Communicator::duplicate(MPI_COMM_WORLD);
    if (const auto whyNot = whyNotBy(GetParam(), owner.view()))
        GTEST_SKIP() << *whyNot;
    forRandomCases(owner.view(), 8,
                   [&](std::uint64_t number) { return runCase<SparseRun>(number, owner.view(), hasDevice); });
}

INSTANTIATE_TEST_SUITE_P(Ways, RandomSparseOperations, testing::Values("host", "staged", "direct", "peer"));

} // namespace
} // namespace DNDS::test
