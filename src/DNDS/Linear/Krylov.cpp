#include "DNDS/Linear/Krylov.hpp"

#include "DNDS/Mpi/FailTogether.hpp"

namespace DNDS {

// One line, such as "converged after 12 iterations, residual 1e-09 (limit 2e-09), 0.2 at the start".
std::string KrylovResult::text() const {
    const auto how = [this]() -> std::string_view {
        switch (end) {
        case End::Converged:
            return "converged";
        case End::IterationLimit:
            return "not converged: the limit of iterations";
        case End::NotPositiveDefinite:
            return "not converged: the matrix or the preconditioner is not positive definite";
        case End::Breakdown:
            return "not converged: the method broke down";
        case End::Failed:
            return "not converged: the solver gave up";
        case End::NotFinite:
            break;
        }
        return "not converged: infinite or not a number";
    };
    return fmt::format("{}{} after {} iterations, residual {:.3g}{}, {:.3g} at the start", how(),
                       reason.empty() ? reason : fmt::format(" ({})", reason), iterations, residual,
                       limit > 0 ? fmt::format(" (limit {:.3g})", limit) : std::string(), first);
}

// Options are compared as text: a message then shows what differs.
void Detail::requireSameOptions(CommunicatorView comm, const char *method, const KrylovOptions &options) {
    requireSameSettings(comm, method, [&] {
        DNDS_CHECK(options.restart >= 1 && options.maxIterations >= 0 && options.relative >= 0 && options.absolute >= 0,
                   ArgumentError, "{}: restart is at least 1, the others at least 0; here {}, {}, {}, {}", method,
                   options.restart, options.maxIterations, options.relative, options.absolute);
        return std::vector<std::string>{
            fmt::format("relative = {}", options.relative), fmt::format("absolute = {}", options.absolute),
            fmt::format("maxIterations = {}", options.maxIterations), fmt::format("restart = {}", options.restart),
            fmt::format("exactSums = {}", options.exactSums)};
    });
}

// Attached to the communicator's context: made once, and destroyed with it. Shared by all solves, since making one is
// collective.
// Solves of a communicator run one after another, so one reduction at a time suffices.
MessageReduction &Detail::krylovSums(CommunicatorContext &context) {
    return context.attach<MessageReduction>(
        [&] { return std::make_shared<MessageReduction>(context, "scalar products of solvers"); });
}

} // namespace DNDS
