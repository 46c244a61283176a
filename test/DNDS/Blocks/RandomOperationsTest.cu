// Random sequences of operations on fields on random blocks, on the host and on the device, beside a model of plain
// arrays without messages: equal to the bit after each of them.

#include "DNDS/Blocks/BlockBoundary.hpp"
#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Blocks/RandomBlocks.hpp"
#include "DNDS/Blocks/ReplicatedGrid.hpp"
#include "DNDS/Device/Stream.hpp"
#include "DNDS/Exchange/DeviceCase.hpp"
#include "support/RandomCases.hpp"

#include <optional>

namespace DNDS::test {
namespace {

/// The value of ghosts beyond walls.
struct Wave {
    DNDS_HOST_DEVICE double operator()(const BoundaryGhost &ghost) const {
        const index place = ghost.cell[0] * 131 + ghost.cell[1] * 17 + ghost.cell[2] * 3 + ghost.cell[3];
        return static_cast<double>(place) + 7.0 * static_cast<double>(ghost.component) + 100.0 * ghost.face.dim +
               (ghost.face.high ? 50 : 0) + ghost.time;
    }
};

/// Two fields on one pattern and their models.
template <class T>
class RandomRun {
  public:
    explicit RandomRun(std::uint64_t number) : random_(number), log_(number) {
        if (Device::available())
            stream_.emplace();
        blocks_ = drawBlocks();
        const GhostWidths widths = randomWidths(blocks_.grid->dims(), random_);
        components_ = static_cast<rowsize>(1 + random_() % 3);
        log_.note("nodal [{}], ghosts {}, {} components\n{}", fmt::join(centring_.nodal, ""), describe(widths),
                  components_, blocks_.grid->describe());
        u_ = BlockField<T>("u", here(), blocks_.grid, options(widths));
        v_ = BlockField<T>("v", here(), u_.blockPattern(), components_);
        const auto points = std::make_shared<const ReplicatedGrid>(blocks_.grid, widths, centring_, blocks_.keyOf);
        model_.emplace(points, components_);
        other_.emplace(points, components_);
        rewrite();
        other_->draw(random_());
        load(v_, *other_);
        drawWalls();
    }

    /// Returns false at the first difference, on all ranks.
    bool run() {
        using Operation = std::pair<const char *, void (RandomRun::*)()>;
        const std::vector<Operation> operations{{"exchange", &RandomRun::exchange},
                                                {"push", &RandomRun::push},
                                                {"push", &RandomRun::push},
                                                {"twoPushes", &RandomRun::twoPushes},
                                                {"fill", &RandomRun::fill},
                                                {"move", &RandomRun::move},
                                                {"swap", &RandomRun::swap},
                                                {"copy", &RandomRun::copy},
                                                {"copy", &RandomRun::copy},
                                                {"changeSide", &RandomRun::changeSide},
                                                {"transports", &RandomRun::forceTransports},
                                                {"fail", &RandomRun::fail},
                                                {"rewrite", &RandomRun::rewrite},
                                                {"vectors", &RandomRun::vectors}};
        for (int step = 0; step < 14; ++step) {
            const auto &[name, operation] = operations[random_() % operations.size()];
            log_.note("\n{} {}: {}", step, onDevice() ? "device" : "host", name);
            (this->*operation)();
            if ((random_() % 2 == 0 || step == 13) && !agrees())
                return false;
        }
        return true;
    }
    const RandomLog &log() const { return log_; }

  private:
    RandomBlocks drawBlocks() {
        const bool turned = random_() % 3 == 0;
        const int dims = turned ? 2 + static_cast<int>(random_() % 2) : 1 + static_cast<int>(random_() % 4);
        const auto centrings = centringsOf(dims);
        centring_ = random_() % 3 == 0 ? Centring{} : centrings[random_() % centrings.size()];
        return randomBlocks(dims, turned, centring_, random_);
    }
    BlockFieldOptions options(const GhostWidths &widths) {
        return {.ghosts = widths,
                .components = components_,
                .order = random_() % 2 == 0 ? ComponentOrder::Inside : ComponentOrder::Outside,
                .centring = centring_};
    }
    static std::string describe(const GhostWidths &widths) {
        return fmt::format("[{}]-[{}] {}", fmt::join(widths.low, " "), fmt::join(widths.high, " "),
                           widths.shape == GhostShape::Star ? "star" : "box");
    }
    PushOp drawOp() {
        constexpr std::array<PushOp, 5> ops{PushOp::Sum, PushOp::Sum, PushOp::Min, PushOp::Max, PushOp::Replace};
        const PushOp op = ops[random_() % ops.size()];
        log_.note(" op {}", static_cast<int>(op));
        return op;
    }
    bool onDevice() const { return u_.side() == MemorySpace::Device; }

    void exchange() {
        u_.exchangeGhosts();
        model_->exchange();
    }
    /// In one call, in a stream, or while another exchange is in flight.
    void push() {
        const PushOp op = drawOp();
        const auto way = random_() % 3;
        if (!model_->canPush())
            return log_.note(" skipped");
        log_.note(" way {}", way);
        if (way == 0) {
            u_.startPushGhosts(op);
            v_.startExchangeGhosts();
            u_.finishPushGhosts();
            v_.finishExchangeGhosts();
            other_->exchange();
        } else if (way == 1 && onDevice()) {
            u_.startPushGhosts(op, stream_->handle());
            u_.finishPushGhosts(stream_->handle());
            stream_->synchronize();
        } else
            u_.pushGhosts(op);
        model_->push(op);
    }
    void twoPushes() {
        const PushOp op = drawOp();
        if (!model_->canPush() || !other_->canPush())
            return log_.note(" skipped");
        v_.startPushGhosts(op);
        u_.startPushGhosts(PushOp::Sum);
        v_.finishPushGhosts();
        u_.finishPushGhosts();
        other_->push(op);
        model_->push(PushOp::Sum);
    }
    void fill() {
        if (blocks_.turned)
            return;
        boundary_->setTime(++time_);
        exchangeAndFill(u_, *boundary_, onDevice() ? Executor::device(stream_->handle()) : Executor::host());
        if (stream_)
            stream_->synchronize();
        model_->exchange();
        model_->fillWalls(rules_, [&](const IndexVector &position, int d, bool high, rowsize c) {
            BoundaryGhost ghost;
            std::copy_n(position.begin(), blocks_.grid->dims(), ghost.cell);
            ghost.component = c;
            ghost.face = {d, high, 0};
            ghost.time = time_;
            return static_cast<T>(Wave{}(ghost));
        });
    }
    void move() {
        const auto to = redealt(*u_.grid(), random_);
        u_ = u_.moved(to);
        v_ = v_.moved(to);
        EXPECT_EQ(u_.blockPattern(), v_.blockPattern());
        makeBoundary();
    }
    void swap() {
        u_.swapData(v_);
        std::swap(model_->values(), other_->values());
    }
    /// To other blocks, and from there back into the second field.
    void copy() {
        const GhostWidths widths = randomWidths(blocks_.grid->dims(), random_);
        const auto grid = recut(*blocks_.grid, !blocks_.turned && random_() % 3 == 0, random_);
        BlockField<T> x("x", here(), grid, options(widths));
        ReplicatedField<T> model(std::make_shared<ReplicatedGrid>(grid, widths, centring_, blocks_.keyOf), components_);
        model.draw(random_());
        load(x, model);
        if (onDevice())
            x.toDevice();
        const bool ghosts = random_() % 2 == 0;
        const PushOp op = ghosts ? PushOp::Replace : drawOp();
        log_.note(" ghosts {} to {} {}", ghosts, describe(widths), grid->describe());
        copyBlocks(u_, x, {.ghosts = ghosts, .op = op});
        model.copyFrom(*model_, ghosts, op);
        if (random_() % 3 == 0 && model.canPush()) {
            x.pushGhosts(op);
            model.push(op);
        }
        if (random_() % 4 == 0) {
            x.exchangeGhosts();
            model.exchange();
        }
        copyBlocks(x, v_, {.ghosts = !ghosts});
        other_->copyFrom(model, !ghosts, PushOp::Replace);
        if (onDevice())
            x.toHost();
        std::string first;
        wrong_ += differences(x, model, first);
        if (!first.empty())
            log_.note("\nthe copy: {}", first);
    }
    void changeSide() {
        if (!Device::available())
            return;
        const bool back = onDevice();
        for (BlockField<T> *field : {&u_, &v_})
            back ? field->toHost() : field->toDevice();
    }
    /// Pulls and pushes by transports that are not chosen by themselves.
    void forceTransports() {
        const auto kinds = onDevice() ? deviceTransports() : allTransports();
        const PushOp op = drawOp();
        u_.initExchangeGhosts({.transport = kinds[random_() % kinds.size()]});
        u_.initPushGhosts(op, {.transport = kinds[random_() % kinds.size()]});
        exchange();
        u_.pushGhosts(op); // all copies of a point are equal
        model_->push(op);
    }
    /// One rank makes a mistake; all recover, and exchanges work.
    void fail() {
        const int culprit = static_cast<int>(random_() % toSize(here().size()));
        if (here().size() == 1) // is never revoked
            return;
        exchange(); // sets up if need be, which all ranks do together or fail to do
        v_.exchangeGhosts();
        other_->exchange();
        MPI_Barrier(MPI_COMM_WORLD); // no rank fails while others are in an earlier exchange
        try {
            if (here().rank() == culprit) {
                u_.startExchangeGhosts();
                u_.startExchangeGhosts();
            }
            for (int k = 0; k < 3; ++k) {
                u_.exchangeGhosts();
                v_.exchangeGhosts();
            }
        } catch (const Error &) { // on all ranks in the end, which need not be in the same call
        }
        recoverTogether(here());
        exchange();
        v_.exchangeGhosts();
        other_->exchange();
    }
    void rewrite() {
        const bool device = onDevice();
        if (device)
            u_.toHost();
        model_->draw(random_());
        load(u_, *model_);
        if (device)
            u_.toDevice();
    }
    /// Functions of vectors, on the host.
    void vectors() {
        if constexpr (std::is_same_v<T, real>) {
            if (onDevice())
                return;
            axpy(v_, 0.5, u_);
            for (std::size_t b = 0; b < model_->values().size(); ++b)
                for (std::size_t k = 0; k < model_->values()[b].size(); ++k)
                    other_->values()[b][k] += 0.5 * model_->values()[b][k];
            EXPECT_EQ(max(u_), model_->largest());
        }
    }

    /// A rule for each face and component; rules that the grid does not allow become None.
    void drawWalls() {
        for (int d = 0; d < blocks_.grid->dims() && !blocks_.turned; ++d)
            for (const bool high : {false, true})
                for (rowsize c = 0; c < components_ && !blocks_.grid->spaces()[0].periodic[toSize(d)]; ++c) {
                    WallRule<T> &rule = rules_[{d, high, c}];
                    rule.kind = static_cast<decltype(rule.kind)>(random_() % 5);
                    rule.value = static_cast<T>(static_cast<int>(random_() % 9));
                    rule.factor = static_cast<T>(static_cast<int>(random_() % 3) - 1);
                }
        makeBoundary();
    }
    void makeBoundary() {
        boundary_.emplace(u_, Wave{});
        for (auto &[face, rule] : rules_) {
            const auto &[d, high, c] = face;
            const BlockFace at{d, high, -1};
            if (rule.kind == WallRule<T>::Constant)
                boundary_->constant(at, rule.value, c);
            else if (rule.kind == WallRule<T>::Nearest)
                boundary_->nearest(at, c);
            else if (rule.kind == WallRule<T>::Function)
                boundary_->function(at, c);
            else if (rule.kind == WallRule<T>::Mirror)
                try {
                    boundary_->mirror(at, rule.factor, c);
                } catch (const ArgumentError &) { // a block is thinner than its ghosts
                    rule.kind = WallRule<T>::None;
                }
        }
        boundary_->setTime(time_);
    }

    /// Compares both fields with their models. Collective.
    bool agrees() {
        const bool device = onDevice();
        std::array<std::string, 2> first;
        if (device) {
            u_.toHost();
            v_.toHost();
        }
        wrong_ += differences(u_, *model_, first[0]) + differences(v_, *other_, first[1]);
        if (device) {
            u_.toDevice();
            v_.toDevice();
        }
        if (wrong_ > 0)
            ADD_FAILURE() << wrong_ << " values differ; u: " << first[0] << "; v: " << first[1] << '\n' << log_.text();
        return here().allReduce(wrong_, MPI_SUM) == 0;
    }

    Random random_;
    RandomLog log_;
    Centring centring_;
    RandomBlocks blocks_;
    rowsize components_ = 1;
    BlockField<T> u_, v_;
    std::optional<ReplicatedField<T>> model_, other_; ///< models of u and v
    WallRules<T> rules_;
    std::optional<BlockBoundary<T, Wave>> boundary_;
    real time_ = 0;
    index wrong_ = 0;
    std::optional<Device::Stream> stream_; ///< empty without a device
};

TEST(RandomBlockOperations, GiveTheBitsOfPlainArrays) {
    forRandomCases(here(), 12, [](std::uint64_t number) {
        return number % 2 == 0 ? runCase<RandomRun<real>>(number) : runCase<RandomRun<std::int32_t>>(number);
    });
}

} // namespace
} // namespace DNDS::test
