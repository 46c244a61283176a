#include "DNDS/Serialize/Checkpoint.hpp"

namespace DNDS {

std::string CheckpointArray::description() const {
    return fmt::format("{}[{}] x {}, {} rows in {} blocks of {}{}", elementKindName(kind), elementBytes,
                       ragged ? fmt::format("any number ({} in all)", elements) : fmt::format("{}", width), rows,
                       blocks(), blockRows, listed ? ", ids listed" : "");
}

// Sorted by name, so that the order in which arrays were added does not show. Stored in the file and compared when it
// is read: this text is part of the format.
std::string CheckpointContent::manifest() const {
    std::map<std::string, std::string> lines;
    for (const CheckpointArray &array : arrays)
        lines[array.name] = array.description();
    std::string text;
    for (const auto &[name, description] : lines)
        // Sizes only: values may be large.
        text += fmt::format("array {}: {}\n", name, description);
    for (const auto &[name, value] : values) {
        if (const auto *integers = std::get_if<std::vector<index>>(&value))
            text += fmt::format("value {}: {} integers\n", name, integers->size());
        else if (const auto *numbers = std::get_if<std::vector<real>>(&value))
            text += fmt::format("value {}: {} numbers\n", name, numbers->size());
        else
            text += fmt::format("value {}: text of {} bytes\n", name, std::get<std::string>(value).size());
    }
    return text;
}

} // namespace DNDS
