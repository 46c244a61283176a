/// @file CgnsOutput.hpp
/// @brief Writes the nodes of a CGNS file, arrays piece by piece. Part of CgnsWriter.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace DNDS::Geom::Detail {

/// A CGNS file that one rank writes through the library's node interface (cgio), which, unlike the mid-level library,
/// neither keeps arrays in memory nor cuts numbers to 32 bits. All functions are Local and throw DataError with the
/// path if the library fails, NotBuiltError if DNDS was built without it.
class CgnsOutput {
  public:
    /// Nodes are known by the library's numbers.
    using Node = double;
    enum class Type : std::uint8_t { Real, Int32, Int64 };

    CgnsOutput(std::string path, bool hdf5);
    CgnsOutput(const CgnsOutput &) = delete;
    CgnsOutput &operator=(const CgnsOutput &) = delete;
    ~CgnsOutput();

    Node root() const noexcept { return root_; }
    /// A node without data.
    Node add(Node parent, const std::string &name, const char *label);
    Node addText(Node parent, const std::string &name, const char *label, const std::string &text);
    /// Integers in one dimension, or as one row of two.
    Node addIntegers(Node parent, const std::string &name, const char *label, Type type,
                     const std::vector<index> &values, bool row = false);
    /// Reals in one dimension, of double precision if `wide`, else of single.
    Node addReals(Node parent, const std::string &name, const char *label, const std::vector<real> &values, bool wide);
    /// An array of `length` values, which `write` fills.
    Node addArray(Node parent, const std::string &name, const char *label, Type type, index length, bool row = false);
    /// Writes values [first, first + count), counted from 0, of an array made with the same `row`.
    void write(Node array, index first, index count, const void *values, bool row = false);
    /// Throws if the library cannot finish the file, which the destructor does not report.
    void close();

  private:
    void check(int status, const std::string &what) const;

    std::string path_;
    int file_ = -1;
    Node root_ = 0;
};

} // namespace DNDS::Geom::Detail
