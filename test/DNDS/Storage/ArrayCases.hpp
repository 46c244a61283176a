/// @file ArrayCases.hpp
/// @brief Array types of every layout and random contents for them, to be compared with plain vectors of vectors.
#pragma once

#include "DNDS/Storage/Array.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

namespace DNDS::test {

/// An element type that is neither a scalar nor an array of them; without padding, as hashes compare bytes.
struct Particle {
    real position;
    std::int32_t cell;
    std::int32_t kind;
    friend bool operator==(const Particle &, const Particle &) = default;
};

using ArrayTypes =
    ::testing::Types<Array<real, 5>, Array<std::uint8_t, 3>, Array<Particle, 2, 2, 64>, Array<real, 0>,
                     Array<index, DynamicSize>, Array<std::array<float, 3>, DynamicSize, DynamicSize, 64>,
                     Array<std::int32_t, NonUniformSize, 6>, Array<real, NonUniformSize, 3, 32>,
                     Array<std::uint16_t, NonUniformSize, DynamicSize>,
                     Array<Particle, NonUniformSize, DynamicSize, 16>, Array<real, NonUniformSize>,
                     Array<std::uint8_t, NonUniformSize>, Array<std::array<float, 3>, NonUniformSize>>;

template <class T>
T makeElement(std::mt19937::result_type random) {
    const auto seed = static_cast<std::uint32_t>(random);
    if constexpr (std::is_arithmetic_v<T>)
        return static_cast<T>(seed);
    else if constexpr (std::is_same_v<T, Particle>)
        return {seed * 0.5, static_cast<std::int32_t>(seed % 1000), 7};
    else
        return {static_cast<float>(seed % 1000), 1.0F, static_cast<float>(seed % 77)};
}

template <class A>
using Reference = std::vector<std::vector<typename A::Element>>;

/// The run-time width that the cases use.
inline constexpr rowsize caseWidth = 4;

template <class A>
constexpr rowsize largestCaseRow() {
    if constexpr (A::layout == ArrayLayout::StaticFixed)
        return A::rowSizeStatic;
    else if constexpr (A::layout == ArrayLayout::StaticMax)
        return A::rowMaxStatic;
    else if constexpr (A::layout == ArrayLayout::CSR)
        return 9;
    else
        return caseWidth;
}

/// Random rows that fit `A`.
template <class A>
Reference<A> randomRows(std::mt19937 &random, std::size_t rows) {
    Reference<A> reference(rows);
    std::uniform_int_distribution<rowsize> size(0, largestCaseRow<A>());
    for (auto &row : reference) {
        row.resize(static_cast<std::size_t>(isFixedLayout(A::layout) ? largestCaseRow<A>() : size(random)));
        for (auto &element : row)
            element = makeElement<typename A::Element>(random());
    }
    return reference;
}

/// Gives `array` the rows of `reference`; CSR arrays end up compressed.
template <class A>
void assign(A &array, const Reference<A> &reference) {
    const auto rows = static_cast<index>(reference.size());
    const auto sizeOf = [&](index i) { return reference[static_cast<std::size_t>(i)].size(); };
    if constexpr (A::layout == ArrayLayout::StaticFixed)
        array.resize(rows);
    else if constexpr (A::layout == ArrayLayout::Fixed)
        array.resize(rows, caseWidth);
    else if constexpr (A::layout == ArrayLayout::Max)
        array.resize(rows, caseWidth, sizeOf);
    else
        array.resize(rows, sizeOf);
    for (index i = 0; i < rows; ++i)
        for (rowsize j = 0; j < array.rowSize(i); ++j)
            array(i, j) = reference[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
}

/// Fails the test where `array` has other rows than `reference`.
template <class A>
void expectRows(const A &array, const Reference<A> &reference) {
    ASSERT_EQ(array.size(), static_cast<index>(reference.size()));
    for (index i = 0; i < array.size(); ++i) {
        const auto &row = reference[static_cast<std::size_t>(i)];
        ASSERT_EQ(array.rowSize(i), static_cast<rowsize>(row.size())) << "row " << i;
        for (rowsize j = 0; j < array.rowSize(i); ++j) {
            ASSERT_TRUE(array(i, j) == row[static_cast<std::size_t>(j)]) << "row " << i << " element " << j;
            ASSERT_EQ(&array(i, j), array[i] + j);
        }
    }
}

} // namespace DNDS::test
