/// @file P4est.cpp
/// @brief The ghost layer of a uniform forest of p4est as a contestant.
#include "GhostMethod.hpp"

#include <p8est_extended.h>
#include <p8est_ghost.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

namespace DNDS::Bench {

namespace {

struct Destroy {
    void operator()(p8est_connectivity_t *cube) const { p8est_connectivity_destroy(cube); }
    void operator()(p8est_t *forest) const { p8est_destroy(forest); }
    void operator()(p8est_ghost_t *ghosts) const { p8est_ghost_destroy(ghosts); }
};

/// A cube of one tree, refined to cells of one level; p4est's x is the last dimension here.
class Forest final : public GhostMethod {
  public:
    Forest(const BlockCase &of, int level)
        : GhostMethod(P4estName, of), level_(level), cube_(p8est_connectivity_new_unitcube()),
          forest_(p8est_new_ext(of.comm().handle(), cube_.get(), 0, level, 1, 0, nullptr, nullptr)),
          layer_(p8est_ghost_new(forest_.get(), P8EST_CONNECT_FULL)),
          values_(toSize(forest_->local_num_quadrants * of.components())),
          ghosts_(layer_->ghosts.elem_count * toSize(of.components())) {
        for (std::size_t k = 0; k < layer_->mirrors.elem_count; ++k)
            mirrors_.push_back(&values_[toSize(cell(layer_->mirrors, k).p.piggy3.local_num * of.components())]);
    }
    /// Messages are posted and awaited; p4est packs the cells of each peer into a buffer that it allocates.
    void exchange() override {
        p8est_ghost_exchange_custom(forest_.get(), layer_.get(), toSize(of().components()) * sizeof(double),
                                    mirrors_.data(), ghosts_.data());
    }
    void rewrite(int round) override {
        for (std::size_t k = 0; k < mirrors_.size(); ++k)
            for (int c = 0; c < of().components(); ++c)
                static_cast<double *>(mirrors_[k])[c] =
                    BlockCase::valueOf(placeOf(cell(layer_->mirrors, k)), 0, c, round);
    }
    void compare(int round) const override {
        DNDS_CHECK(static_cast<index>(ghosts_.size()) == of().received(), DataError,
                   "{} has {} ghost values, DNDS has {}", name(), ghosts_.size(), of().received());
        for (std::size_t k = 0; k < ghosts_.size(); ++k) {
            const auto components = toSize(of().components());
            DNDS_CHECK(ghosts_[k] == BlockCase::valueOf(placeOf(cell(layer_->ghosts, k / components)), 0,
                                                        static_cast<int>(k % components), round),
                       DataError, "{} brought a wrong ghost", name());
        }
    }

  private:
    static const p8est_quadrant_t &cell(sc_array_t &cells, std::size_t k) {
        return *p8est_quadrant_array_index(&cells, k);
    }
    IndexVector placeOf(const p8est_quadrant_t &cell) const {
        const int shift = P8EST_MAXLEVEL - level_;
        return {cell.z >> shift, cell.y >> shift, cell.x >> shift};
    }

    int level_;
    std::unique_ptr<p8est_connectivity_t, Destroy> cube_;
    std::unique_ptr<p8est_t, Destroy> forest_;
    std::unique_ptr<p8est_ghost_t, Destroy> layer_;
    std::vector<double> values_; ///< in the order of the forest
    std::vector<double> ghosts_;
    std::vector<void *> mirrors_; ///< the values of cells that others need
};

} // namespace

std::unique_ptr<GhostMethod> makeP4est(const BlockCase &of, const IndexVector &parts) {
    const Box &cells = of.pattern()->grid()->spaces().front().cells;
    const auto edge = static_cast<std::uint64_t>(cells.extent(0));
    // Morton's order cuts a cube into such parts, the slowest dimension first.
    const bool same = of.width() == 1 && std::has_single_bit(edge) && cells.extent(1) == cells.extent(0) &&
                      cells.extent(2) == cells.extent(0) && parts[0] <= 2 && parts[1] <= parts[0] &&
                      parts[2] <= parts[1];
    if (!same)
        return nullptr;
    sc_set_log_defaults(nullptr, nullptr, SC_LP_ERROR);
    return std::make_unique<Forest>(of, std::countr_zero(edge));
}

} // namespace DNDS::Bench
