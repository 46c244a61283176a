#include "Components.hpp"

namespace Components {

void joinAll(const DNDS::Executor &executor, index cells, const JoinNeighbours<ParentsView> &body) {
    DNDS::parallelFor(executor, cells, body);
}

void pointAll(const DNDS::Executor &executor, index cells, const PointAtRoot<ParentsView> &body) {
    DNDS::parallelFor(executor, cells, body);
}

} // namespace Components
