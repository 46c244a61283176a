#include "DNDS/Transport/LocalTransport.hpp"

namespace DNDS {

void LocalTransport::start() {
    for (std::size_t k = 0; k < plan_.outgoing.size(); ++k)
        for (std::size_t p = 0; p < plan_.outgoing[k].parts.size(); ++p)
            plan_.outgoing[k].parts[p].gather(endpoints_.sources[p],
                                              endpoints_.destinations[p] + plan_.incoming[k].parts[p].offset);
}

} // namespace DNDS
