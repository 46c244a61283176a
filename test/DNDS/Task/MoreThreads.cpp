// Lets all tests of the program have more threads than there are processors.

#include <oneapi/tbb/global_control.h>

namespace {

const tbb::global_control moreThreads(tbb::global_control::max_allowed_parallelism, 8);

} // namespace
