/// @file ArrayEigenVector.hpp
/// @brief A distributed array whose rows are vectors.
#pragma once

#include "DNDS/Array/ArrayEigenMatrix.hpp"

#include <concepts>
#include <string>
#include <utility>

namespace DNDS {

/// One vector a row, seen as an Eigen map: [rows x size]. It is a matrix array of one column, in the row layout that
/// `Array<real, size, max, align>` has.
///
///     ArrayEigenVector<3> velocity("velocity", comm);
///     velocity.resize(cells);
///     velocity[0] = Eigen::Vector3d::UnitX();
///
/// Residency, checks and copies are as for `Array`. All functions are Local.
template <rowsize sizeParam = 1, rowsize maxParam = sizeParam, int align = NoAlign>
class ArrayEigenVector : public ArrayEigenMatrix<sizeParam, 1, maxParam, 1, align> {
  public:
    using Base = ArrayEigenMatrix<sizeParam, 1, maxParam, 1, align>;

    /// No rows, on the ranks of `comm`. The name is for messages.
    explicit ArrayEigenVector(CommunicatorView comm) : Base(comm) {}
    ArrayEigenVector(std::string name, CommunicatorView comm) : Base(std::move(name), comm) {}
    /// Chooses the run-time size, or maximum.
    ArrayEigenVector(std::string name, CommunicatorView comm, rowsize width) : Base(std::move(name), comm, width, 1) {}

    /// These are as ArrayBase::resize.
    void resize(index rows) override { Base::resize(rows); }
    void resize(index rows, rowsize width) { Base::resize(rows, width, 1); }
    template <std::invocable<index> SizeOf>
    requires(Base::Traits::nonUniform) void resize(index rows, SizeOf &&sizeOf) {
        Base::resize(rows, [&](index i) { return static_cast<rowsize>(sizeOf(i)); });
    }
    template <std::invocable<index> SizeOf>
    requires(Base::layout == ArrayLayout::Max) void resize(index rows, rowsize width, SizeOf &&sizeOf) {
        Base::resize(0, width, 1);
        resize(rows, std::forward<SizeOf>(sizeOf));
    }
    /// As ArrayBase::resizeRow.
    void resizeRow(index i, rowsize width) { this->resizeMatrix(i, width, 1); }
    /// As Array::appendToRow.
    void appendToRow(index i, const real &value) requires(Base::Traits::nonUniform) {
        Base::Base::appendToRow(i, value);
    }
};

} // namespace DNDS
