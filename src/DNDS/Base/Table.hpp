/// @file Table.hpp
/// @brief Readable tables of text.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS {

/// Lines of columns, two spaces apart. Local.
///
///     Table table({6, -12});
///     table.add({"rank", "host"});
///     table.add({"0", "node17"});
///     fmt::print("{}", table.text);
class Table {
  public:
    /// The least width of each column: positive for numbers, which are aligned to the right; negative for texts; 0 for
    /// a last column that no spaces follow.
    explicit Table(std::vector<int> columns) : columns_(std::move(columns)) {}

    /// Appends a line of cells, at most one a column.
    void add(std::initializer_list<std::string_view> cells) {
        auto width = columns_.begin();
        for (const std::string_view cell : cells) {
            text += width == columns_.begin() ? "" : "  ";
            *width < 0 ? fmt::format_to(std::back_inserter(text), "{:<{}}", cell, -*width)
                       : fmt::format_to(std::back_inserter(text), "{:>{}}", cell, *width);
            ++width;
        }
        text += '\n';
    }

    /// The lines so far; other lines may be appended.
    std::string text;

  private:
    std::vector<int> columns_;
};

} // namespace DNDS
