#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <exception>
#include <vector>

namespace DNDS {

namespace {

WideExactAccumulator plus(WideExactAccumulator a, const WideExactAccumulator &b) noexcept { return a += b; }
constexpr MessageReduction::Combine combine = combineEach<WideExactAccumulator, plus>;

void add(void *theirs, void *mine, int *count, MPI_Datatype * /*type*/) {
    combine(static_cast<std::byte *>(mine), static_cast<const std::byte *>(theirs),
            static_cast<std::size_t>(*count) * sizeof(WideExactAccumulator));
}

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
    // Made for each reduction, which is cheap beside it: kept ones would have to be freed before MPI_Finalize.
    const ByteBlock one{0, sizeof(WideExactAccumulator)};
    const Datatype type = Datatype::fromBlocks({&one, 1});
    MPI_Op sum = MPI_OP_NULL;
    checkMpi(MPI_Op_create(add, 1, &sum), "MPI_Op_create");
    const std::exception_ptr thrown =
        attempt([&] { comm.allReduce(all.data(), static_cast<int>(all.size()), type.handle(), sum); });
    MPI_Op_free(&sum);
    if (thrown)
        std::rethrow_exception(thrown);
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
