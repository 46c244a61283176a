#include "DNDS/Geom/Generate/BoxPattern.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace DNDS::Geom::Detail {

namespace {

/// A rectangle whose lower right corner is left out. Rows of bricks and of nodes below the step's top are shorter; the
/// front and the top of the step have as many faces as x+ and y- lose.
/// Nodes and bricks keep their order; those below the step are skipped by arithmetic, O(1) a query.
class SteppedPattern final : public BoxPattern {
  public:
    SteppedPattern(std::unique_ptr<BoxPattern> whole, const BoxMeshOptions &options)
        : whole_(std::move(whole)), width_(options.cells[0]),
          perBrick_(whole_->cellCount() / width_ / options.cells[1]),
          start_(std::llround(options.step.start / options.lengths[0] * static_cast<real>(width_))),
          height_(std::llround(options.step.height / options.lengths[1] * static_cast<real>(options.cells[1]))) {}

    int dimension() const override { return 2; }
    index nodeCount() const override { return whole_->nodeCount() - (width_ - start_) * height_; }
    index cellCount() const override { return whole_->cellCount() - perBrick_ * (width_ - start_) * height_; }
    index faceCount() const override { return whole_->faceCount(); }

    std::array<real, 3> position(index node) const override {
        return whole_->position(inWhole(node, start_ + 1, width_ + 1));
    }

    // By bricks, which have equally many cells each.
    void cell(index number, BoxElement &result) const override {
        whole_->cell(inWhole(number / perBrick_, start_, width_) * perBrick_ + number % perBrick_, result);
        renumber(result);
    }

    // A face of y- below the step moves to its top, one of x+ to its front.
    void face(index number, BoxElement &result) const override {
        whole_->face(number, result);
        const index line = width_ + 1;
        const auto all = [&](auto &&holds) { return std::all_of(result.nodes.begin(), result.nodes.end(), holds); };
        index move = 0;
        if (result.side == 2 && all([&](index node) { return node % line >= start_; })) {
            move = height_ * line;
        } else if (result.side == 1 && all([&](index node) { return node / line <= height_; })) {
            move = start_ - width_;
            result.side = 2;
        }
        for (index &node : result.nodes)
            node += move;
        renumber(result);
    }

  private:
    /// The number in the whole box of a brick or a node; lines below the top of the step have `few`, others `many`.
    index inWhole(index number, index few, index many) const {
        const index below = height_ * few;
        return number < below ? number / few * many + number % few : height_ * many + number - below;
    }

    /// Numbers of the whole rectangle to numbers without the nodes below the step.
    void renumber(BoxElement &element) const {
        const index line = width_ + 1;
        for (index &node : element.nodes)
            node =
                node / line < height_ ? node / line * (start_ + 1) + node % line : node - height_ * (width_ - start_);
    }

    std::unique_ptr<BoxPattern> whole_;
    index width_; ///< bricks in x
    index perBrick_;
    // The step, in bricks
    index start_;
    index height_;
};

} // namespace

std::unique_ptr<BoxPattern> cutStep(std::unique_ptr<BoxPattern> whole, const BoxMeshOptions &options) {
    return std::make_unique<SteppedPattern>(std::move(whole), options);
}

} // namespace DNDS::Geom::Detail
