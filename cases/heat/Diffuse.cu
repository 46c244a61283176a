#include "Diffuse.hpp"

namespace Heat {

void diffuse(const DNDS::Executor &executor, const Diffuse &step) {
    DNDS::parallelFor(executor, step.cells.size(), step);
}

} // namespace Heat
