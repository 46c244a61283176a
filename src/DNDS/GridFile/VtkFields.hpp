/// @file VtkFields.hpp
/// @brief Checks of the fields of a grid for VTK. Part of VtkGridFile.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/GridFile/ElementConversion.hpp"
#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <fmt/format.h>

#include <span>
#include <string>
#include <vector>

namespace DNDS::Detail {

/// The shape of a field's array. VTK stores x fastest, and the components of a cell together.
inline std::vector<index> vtkShape(const std::array<index, 3> &cells, const VtkGridField &field) {
    std::vector<index> shape{cells[2], cells[1], cells[0]};
    if (field.components > 1)
        shape.push_back(field.components);
    return shape;
}

/// Throws on all ranks if their grids or fields differ. Collective.
inline void requireSameFields(const CommunicatorView &comm, const std::string &path, const std::array<index, 3> &cells,
                              std::span<const VtkGridField> fields) {
    std::vector<std::string> mine{fmt::format("{} x {} x {} cells", cells[0], cells[1], cells[2])};
    for (const VtkGridField &field : fields)
        mine.push_back(fmt::format("field '{}' of {} {}", field.name, field.components, elementKindName(field.kind)));
    requireSame(comm, mine, [&](std::size_t k, const std::string *first) {
        throw ArgumentError(fmt::format("{}: this rank writes {}, rank 0 {}", path,
                                        k < mine.size() ? mine[k] : "no more fields",
                                        first == nullptr ? "no more fields" : *first));
    });
}

/// Throws for fields of another grid, and for names that are empty or repeated. Local.
inline void checkVtkFields(const std::string &path, const std::array<index, 3> &cells,
                           std::span<const VtkGridField> fields) {
    for (const index n : cells)
        DNDS_CHECK(n >= 1, ArgumentError, "{}: a grid of {} x {} x {} cells", path, cells[0], cells[1], cells[2]);
    for (std::size_t f = 0; f < fields.size(); f++) {
        const VtkGridField &field = fields[f];
        index bytes = static_cast<index>(bytesOf(field.kind));
        bool tooMany = false;
        for (const index n : vtkShape(cells, field))
            tooMany = __builtin_mul_overflow(bytes, n, &bytes) || tooMany;
        DNDS_CHECK(!tooMany, ArgumentError, "{}: field '{}' of {} x {} x {} cells has more bytes than a file can have",
                   path, field.name, cells[0], cells[1], cells[2]);
        DNDS_CHECK(!field.name.empty() && field.name.find('/') == std::string::npos, ArgumentError,
                   "{}: '{}' is no name of a field", path, field.name);
        DNDS_CHECK(field.components >= 1, ArgumentError, "{}: field '{}' has {} components", path, field.name,
                   field.components);
        for (std::size_t other = 0; other < f; other++)
            DNDS_CHECK(fields[other].name != field.name, ArgumentError, "{}: two fields are called '{}'", path,
                       field.name);
        for (const WrittenSlab &slab : field.slabs)
            checkSlab(slab, vtkShape(cells, field), fmt::format("{}: field '{}'", path, field.name), field.kind);
    }
}

} // namespace DNDS::Detail
