#include "DNDS/Task/KernelRows.hpp"

namespace DNDS::Task {

void RowGuard::refuse(index row) const {
    throw IndexError(fmt::format("task '{}' {} row {} of '{}'{}, which it did not declare", task, verb, row, array,
                                 row < 0 || row >= rows.size() ? fmt::format(" (it has {} rows)", rows.size())
                                 : row >= owned                ? " (a ghost)"
                                                               : ""));
}

} // namespace DNDS::Task
