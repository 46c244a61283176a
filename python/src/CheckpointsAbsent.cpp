#include "Checkpoints.hpp"

namespace DNDS::Python {

void bindCheckpoint(nanobind::module_ &) {} // this build has no zlib and so no DNDS::Serialize

} // namespace DNDS::Python
