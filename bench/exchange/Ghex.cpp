/// @file Ghex.cpp
/// @brief GHEX's exchange of unstructured grids as a contestant.
#include "AlignedVector.hpp"
#include "PullMethod.hpp"

#include <ghex/communication_object.hpp>
#include <ghex/context.hpp>
#include <ghex/unstructured/pattern.hpp>
#include <ghex/unstructured/user_concepts.hpp>

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

namespace DNDS::Bench {

namespace {

using Domain = ghex::unstructured::domain_descriptor<int, index>;

/// Rows of a father and its son for GHEX, which numbers own rows first: as its own descriptor, which wants both in one
/// array, but with one memcpy a row.
struct Rows {
    using arch_type = ghex::cpu;
    using domain_id_type = int;
    using value_type = double;
    using device_id_type = ghex::arch_traits<arch_type>::device_id_type;

    int rank;
    std::size_t owned;
    std::size_t width;
    const double *father;
    double *son;

    static device_id_type device_id() noexcept { return ghex::arch_traits<arch_type>::default_id(); }
    int domain_id() const noexcept { return rank; }
    int num_components() const noexcept { return static_cast<int>(width); }

    template <class Spaces>
    void pack(double *buffer, const Spaces &spaces, void * /*stream*/) const {
        for (const auto &space : spaces)
            for (const std::size_t row : space.local_indices()) {
                std::memcpy(buffer, father + row * width, width * sizeof(double));
                buffer += width;
            }
    }
    template <class Spaces>
    void unpack(const double *buffer, const Spaces &spaces, void * /*stream*/) {
        for (const auto &space : spaces)
            for (const std::size_t row : space.local_indices()) {
                std::memcpy(son + (row - owned) * width, buffer, width * sizeof(double));
                buffer += width;
            }
    }
};

Domain domainOf(int rank, std::span<const index> offsets, const PullPlan &plan) {
    std::vector<index> rows(toSize(offsets[toSize(rank) + 1] - offsets[toSize(rank)]));
    std::iota(rows.begin(), rows.end(), offsets[toSize(rank)]);
    std::vector<std::size_t> outer(plan.ghosts.size());
    std::iota(outer.begin(), outer.end(), rows.size());
    rows.insert(rows.end(), plan.ghosts.begin(), plan.ghosts.end());
    return {rank, rows.begin(), rows.end(), outer.begin(), outer.end()};
}

class GhexPull final : public PullMethod {
  public:
    GhexPull(CommunicatorView comm, std::span<const index> offsets, const PullPlan &plan, const double *father,
             int width)
        : PullMethod(GhexName), son_(plan.ghosts.size() * toSize(width)), context_(comm.handle(), false),
          pattern_(
              ghex::make_pattern<ghex::unstructured::grid>(context_, ghex::unstructured::halo_generator<int, index>(),
                                                           std::vector<Domain>{domainOf(comm.rank(), offsets, plan)})),
          exchange_(context_), rows_{comm.rank(),
                                     toSize(offsets[toSize(comm.rank()) + 1] - offsets[toSize(comm.rank())]),
                                     toSize(width), father, son_.data()} {}

    void pull() override { exchange_.exchange(pattern_(rows_)).wait(); }
    std::span<double> son() override { return son_; }

  private:
    using Pattern = decltype(ghex::make_pattern<ghex::unstructured::grid>(
        std::declval<ghex::context &>(), ghex::unstructured::halo_generator<int, index>(), std::vector<Domain>()));

    AlignedVector<double> son_;
    ghex::context context_;
    Pattern pattern_;
    ghex::communication_object<Pattern::value_type::grid_type, int> exchange_;
    Rows rows_;
};

} // namespace

std::unique_ptr<PullMethod> makeGhex(CommunicatorView comm, std::span<const index> offsets, const PullPlan &plan,
                                     const double *father, int width) {
    return std::make_unique<GhexPull>(comm, offsets, plan, father, width);
}

} // namespace DNDS::Bench
