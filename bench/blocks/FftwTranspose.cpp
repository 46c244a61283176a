/// @file FftwTranspose.cpp
/// @brief FFTW's distributed transpose as contestant.
#include "SlabMethod.hpp"

#include "DNDS/Base/Error.hpp"

#include <fftw3-mpi.h>

#include <array>
#include <cstddef>

namespace DNDS::Bench {

namespace {

/// Rows of x travel whole: the matrix of z and y has `edge` doubles an entry.
class FftwTranspose final : public SlabMethod {
  public:
    FftwTranspose(CommunicatorView comm, index edge) : SlabMethod("y and z exchanged, FFTW"), edge_(edge) {
        fftw_mpi_init();
        ptrdiff_t sizes[2] = {edge, edge};
        const ptrdiff_t all =
            fftw_mpi_local_size_many_transposed(2, sizes, edge, FFTW_MPI_DEFAULT_BLOCK, FFTW_MPI_DEFAULT_BLOCK,
                                                comm.handle(), &counts_[0], &begins_[0], &counts_[1], &begins_[1]);
        from_ = fftw_alloc_real(toSize(all));
        to_ = fftw_alloc_real(toSize(all));
        plan_ = fftw_mpi_plan_many_transpose(edge, edge, edge, FFTW_MPI_DEFAULT_BLOCK, FFTW_MPI_DEFAULT_BLOCK, from_,
                                             to_, comm.handle(), FFTW_MEASURE);
        DNDS_CHECK(plan_ != nullptr, MpiError, "FFTW has no plan for a transpose of {} x {}", edge, edge);
    }
    ~FftwTranspose() override {
        fftw_destroy_plan(plan_);
        fftw_free(from_);
        fftw_free(to_);
    }
    void run() override { fftw_execute(plan_); }
    void check(CommunicatorView comm, int round) override {
        visit(0, [&](index z, index y, index x, index place) { from_[place] = valueOf(z, y, x, edge_, round); });
        run();
        comm.guarded([&] {
            visit(1, [&](index y, index z, index x, index place) {
                DNDS_CHECK(to_[place] == valueOf(z, y, x, edge_, round), DataError, "{}: a cell is wrong", name());
            });
        });
    }

  private:
    /// The cells of this rank's slab before (0) or after (1) the transpose.
    template <class F>
    void visit(std::size_t side, F f) const {
        index place = 0;
        for (index i = begins_[side]; i < begins_[side] + counts_[side]; ++i)
            for (index j = 0; j < edge_; ++j)
                for (index k = 0; k < edge_; ++k)
                    f(i, j, k, place++);
    }

    index edge_;
    std::array<ptrdiff_t, 2> counts_{}, begins_{};
    double *from_ = nullptr;
    double *to_ = nullptr;
    fftw_plan plan_ = nullptr;
};

} // namespace

std::unique_ptr<SlabMethod> makeFftwTranspose(CommunicatorView comm, index edge) {
    return std::make_unique<FftwTranspose>(comm, edge);
}

} // namespace DNDS::Bench
