#include "Lines.hpp"

namespace Heat {

void solveLines(const DNDS::Executor &executor, const SolveLines &lines) {
    DNDS::parallelFor(executor, lines.bundles(), lines);
}

} // namespace Heat
