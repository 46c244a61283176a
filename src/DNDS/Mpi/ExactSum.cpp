#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <exception>
#include <vector>

namespace DNDS {

namespace {

WideExactAccumulator plus(WideExactAccumulator a, const WideExactAccumulator &b) noexcept { return a += b; }
constexpr MessageReduction::Combine combine = combineEach<WideExactAccumulator, plus>;

/// An operation of MPI that adds accumulators, and their type. Made for each reduction, which is Local and cheap beside
/// it: kept ones would have to be freed before MPI_Finalize.
class Addition {
  public:
    Addition() {
        checkMpi(MPI_Type_contiguous(sizeof(WideExactAccumulator), MPI_BYTE, &type_), "MPI_Type_contiguous");
        checkMpi(MPI_Type_commit(&type_), "MPI_Type_commit");
        checkMpi(MPI_Op_create(add, 1, &operation_), "MPI_Op_create");
    }
    ~Addition() {
        MPI_Op_free(&operation_);
        MPI_Type_free(&type_);
    }
    Addition(const Addition &) = delete;
    Addition &operator=(const Addition &) = delete;
    Addition(Addition &&) = delete;
    Addition &operator=(Addition &&) = delete;

    MPI_Datatype type() const { return type_; }
    MPI_Op operation() const { return operation_; }

  private:
    static void add(void *theirs, void *mine, int *count, MPI_Datatype * /*type*/) {
        combine(static_cast<std::byte *>(mine), static_cast<const std::byte *>(theirs),
                static_cast<std::size_t>(*count) * sizeof(WideExactAccumulator));
    }

    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    MPI_Op operation_ = MPI_OP_NULL;
};

/// The only rounding of all.
void roundEach(std::span<const WideExactAccumulator> exact, std::span<real> sums) {
    for (std::size_t k = 0; k < sums.size(); ++k)
        sums[k] = exact[k].value();
}

} // namespace

// Whether a rank has failed travels as one more sum of the reduction, so that success costs nothing more; only after a
// failure do ranks agree on its text.
void exactSums(CommunicatorView comm, const ExactTerms &terms, std::span<real> sums) {
    requireMpiActive("ranks communicate"); // before anything of MPI is made
    std::vector<WideExactAccumulator> all(sums.size() + 1);
    const std::exception_ptr failure = attempt([&] { terms(std::span(all).first(sums.size())); });
    if (failure)
        all.back() += 1;
    const Addition addition;
    comm.allReduce(all.data(), static_cast<int>(all.size()), addition.type(), addition.operation());
    if (all.back().value() > 0)
        comm.agree(failure);
    roundEach(all, sums);
}

// O(log ranks) messages. A failure of another rank interrupts them, unlike MPI's.
void exactSums(MessageReduction &messages, const ExactTerms &terms, std::span<real> sums) {
    std::vector<WideExactAccumulator> all(sums.size());
    terms(all); // throws at once
    messages.reduce(std::span(all), combine);
    roundEach(all, sums);
}

void exactSums(CommunicatorView comm, std::span<const real> rows, std::span<real> sums) {
    exactSums(
        comm,
        [&](std::span<WideExactAccumulator> own) {
            FixedPoint::addColumns(FixedPoint::columnsOf(rows, own.size()), own);
        },
        sums);
}

} // namespace DNDS
