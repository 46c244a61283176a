#include "DNDS/Base/Environment.hpp"

#include <cstdlib>

namespace DNDS {

Environment readEnvironment() {
    const auto text = [](const char *name) {
        const char *value = std::getenv(name);
        return std::string(value != nullptr ? value : "");
    };
    return {.transport = text("DNDS_TRANSPORT")};
}

} // namespace DNDS
