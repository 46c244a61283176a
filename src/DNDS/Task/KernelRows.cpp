#include "DNDS/Task/KernelRows.hpp"

namespace DNDS::Task {

// Out of line, so that kernels stay small.
void RowGuard::refuse(index row) const {
    throw IndexError(fmt::format("task '{}' {} row {} of '{}'{}, which it did not declare", task, verb, row, array,
                                 row < 0 || row >= rows.size() ? fmt::format(" (it has {} rows)", rows.size())
                                 : row >= owned                ? " (a ghost)"
                                                               : ""));
}

void RowGuard::refuseElement(index row, rowsize j, rowsize width) const {
    throw IndexError(
        fmt::format("task '{}' {} element {} of row {} of '{}', which has {}", task, verb, j, row, array, width));
}

} // namespace DNDS::Task
