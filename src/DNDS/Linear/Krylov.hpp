/// @file Krylov.hpp
/// @brief Linear systems by Krylov methods: conjugate gradients, BiCGStab, GMRES.
#pragma once

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Array/ExactSums.hpp"

#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS {

/// When to stop, and how to sum.
struct KrylovOptions {
    real relative = 1e-8;     ///< stop where the residual's norm is below this times that of the right-hand side,
    real absolute = 0;        ///< or below this,
    int maxIterations = 1000; ///< or after as many products
    int restart = 30;         ///< GMRES: directions that are kept
    /// Products and norms are exact sums, the same to the bit for every number of ranks, and so is the solution where
    /// the operator's products are. Otherwise they are sums of the ranks' sums.
    bool exactSums = true;
    std::function<void(int iteration, real residual)> monitor{}; ///< called on all ranks
};

/// How it ended: the same on all ranks.
struct KrylovResult {
    enum class End : unsigned char {
        Converged,
        IterationLimit,
        NotPositiveDefinite, ///< conjugate gradients met a direction d with d * A d <= 0
        Breakdown,           ///< BiCGStab cannot go on from here: start anew from x, or take GMRES
        NotFinite,           ///< infinite or not a number
        Failed               ///< a solver of another library gave up
    };
    End end = End::IterationLimit;
    int iterations = 0;
    real first = 0;       ///< norm of the residual at the start
    real residual = 0;    ///< and at the end
    std::string reason{}; ///< what another library calls the end

    /// Whether the residual fell to the tolerance; and a line about the end, for people. Local.
    bool converged() const noexcept { return end == End::Converged; }
    std::string text() const;
};

/// No preconditioner: z = r.
struct NoPreconditioner {
    /// Copies `r` to `z`.
    template <class TVector>
    void operator()(const TVector &r, TVector &z) const {
        z.copyFrom(r);
    }
};

namespace Detail {

/// Throws ArgumentError on all ranks for options that differ between ranks or make no sense. Collective.
void requireSameOptions(CommunicatorView comm, const char *method, const KrylovOptions &options);

/// What the methods share: work vectors like b, sums, and when to stop.
template <class TVector>
class KrylovWork {
  public:
    KrylovWork(const char *method, const TVector &b, const TVector &x, const KrylovOptions &options)
        : options_(options), b_(b) {
        b.father->comm().guarded([&] {
            DNDS_CHECK(b.trans.pattern() == x.trans.pattern() && b.father->size() == x.father->size(), LayoutError,
                       "{}: the right-hand side '{}' and the solution '{}' have different rows or ghosts", method,
                       b.father->label(), x.father->label());
        });
        requireSameOptions(b.father->comm(), method, options);
        if (options.exactSums)
            products_.clone(b);
        result_.residual = norm(b);
        limit_ = std::max(options.absolute, options.relative * result_.residual);
    }

    /// A copy of the right-hand side, on its executor, with a persistent pull.
    TVector vector() const {
        TVector made;
        made.clone(b_);
        made.runOn(b_.executor());
        if (made.trans.pattern() != nullptr)
            made.trans.initPersistentPull();
        return made;
    }
    real dot(const TVector &x, const TVector &y) {
        if (!options_.exactSums)
            return x.dot(y);
        products_.runOn(b_.executor());
        products_.copyFrom(x);
        products_ *= y;
        const auto count = static_cast<std::size_t>(products_.father->dataSize());
        const TVector &made = products_;
        const real *const rows = b_.executor().onDevice()
                                     ? made.father->template deviceView<DeviceBackend::CUDA>().rows().data()
                                     : made.father->data();
        real sum = 0;
        DNDS::exactSums(b_.father->comm(), b_.executor(), {rows, count}, {&sum, 1});
        return sum;
    }
    real norm(const TVector &x) { return std::sqrt(dot(x, x)); }

    /// Notes a residual. Whether to stop.
    bool isOver(int iteration, real residual) {
        result_.iterations = iteration;
        result_.residual = residual;
        if (iteration == 0)
            result_.first = residual;
        if (options_.monitor)
            options_.monitor(iteration, residual);
        if (!std::isfinite(residual))
            return end(KrylovResult::End::NotFinite);
        if (residual <= limit_)
            return end(KrylovResult::End::Converged);
        return iteration >= options_.maxIterations && end(KrylovResult::End::IterationLimit);
    }
    bool end(KrylovResult::End how) {
        result_.end = how;
        return true;
    }
    const KrylovResult &result() const { return result_; }

  private:
    const KrylovOptions &options_;
    const TVector &b_;
    TVector products_;
    real limit_ = 0;
    KrylovResult result_;
};

/// x = b - x
template <class TVector>
void residualOf(const TVector &b, TVector &x) {
    x *= real(-1);
    x += b;
}

} // namespace Detail

/// Solves A x = b for a symmetric positive definite A by conjugate gradients (Hestenes and Stiefel 1952), from the x
/// given.
///
/// `multiply(d, y)` sets the owned rows of y to A d; it may pull d, whose persistent pull has been prepared: d is
/// always the same vector. `precondition(r, z)` sets those of z to an approximation of A^-1 r, symmetric and positive
/// definite, too. Vectors are ArrayDof of one pattern; they work on the executor of b. Collective; per iteration one
/// product and three reductions (each exact sum is two), four work vectors and one for exact sums. An exception that
/// the functions throw on one rank leaves the others waiting, as in any collective. Throws on all ranks LayoutError for
/// vectors that do not fit and ArgumentError for options that differ.
///
///     const KrylovResult done = conjugateGradients([&](auto &d, auto &y) { a.multiply(d, y); }, b, x, BlockJacobi(a));
template <class TVector, class Multiply, class Precondition = NoPreconditioner>
KrylovResult conjugateGradients(Multiply &&multiply, const TVector &b, TVector &x, Precondition &&precondition = {},
                                const KrylovOptions &options = {}) {
    Detail::KrylovWork<TVector> work("conjugateGradients", b, x, options);
    TVector d = work.vector(), r = work.vector(), z = work.vector(), y = work.vector();
    d.copyFrom(x);
    multiply(d, r);
    Detail::residualOf(b, r);
    precondition(std::as_const(r), z);
    d.copyFrom(z);
    real rz = work.dot(r, z);
    for (int iteration = 0; !work.isOver(iteration, work.norm(r)); ++iteration) {
        multiply(d, y);
        const real energy = work.dot(d, y);
        if (!(energy > 0) && work.end(KrylovResult::End::NotPositiveDefinite))
            break;
        const real step = rz / energy;
        x.addTo(d, step);
        r.addTo(y, -step);
        precondition(std::as_const(r), z);
        const real before = std::exchange(rz, work.dot(r, z));
        d *= rz / before;
        d += z;
    }
    return work.result();
}

/// The same for any A by BiCGStab (van der Vorst 1992), preconditioned from the right: the residual is that of A x = b.
/// Per iteration two products and six reductions; eight work vectors.
template <class TVector, class Multiply, class Precondition = NoPreconditioner>
KrylovResult biCgStab(Multiply &&multiply, const TVector &b, TVector &x, Precondition &&precondition = {},
                      const KrylovOptions &options = {}) {
    Detail::KrylovWork<TVector> work("biCgStab", b, x, options);
    TVector d = work.vector(), r = work.vector(), first = work.vector(), p = work.vector(), v = work.vector(),
            t = work.vector(), update = work.vector();
    d.copyFrom(x);
    multiply(d, r);
    Detail::residualOf(b, r);
    first.copyFrom(r);
    p.copyFrom(r);
    real rho = work.dot(first, r);
    for (int iteration = 0; !work.isOver(iteration, work.norm(r)); ++iteration) {
        precondition(std::as_const(p), d);
        multiply(d, v);
        const real along = work.dot(first, v);
        if ((along == 0 || rho == 0) && work.end(KrylovResult::End::Breakdown))
            break;
        const real alpha = rho / along;
        x.addTo(d, alpha);
        r.addTo(v, -alpha);
        precondition(std::as_const(r), d);
        multiply(d, t);
        const real size = work.dot(t, t);
        const real omega = size > 0 ? work.dot(t, r) / size : 0;
        x.addTo(d, omega);
        r.addTo(t, -omega);
        const real before = std::exchange(rho, work.dot(first, r));
        if (omega == 0) { // r was zero, or nothing can be gained
            if (!work.isOver(iteration + 1, work.norm(r)))
                work.end(KrylovResult::End::Breakdown);
            break;
        }
        p.addTo(v, -omega);
        p *= rho / before * (alpha / omega);
        p += r;
    }
    return work.result();
}

/// The same for any A by GMRES (Saad and Schultz 1986) with restarts, preconditioned from the right, with modified
/// Gram-Schmidt: iteration k after a restart takes one product and k + 1 reductions, and `restart` + 3 work vectors in
/// all.
template <class TVector, class Multiply, class Precondition = NoPreconditioner>
KrylovResult gmres(Multiply &&multiply, const TVector &b, TVector &x, Precondition &&precondition = {},
                   const KrylovOptions &options = {}) {
    Detail::KrylovWork<TVector> work("gmres", b, x, options);
    TVector d = work.vector(), z = work.vector();
    std::vector<TVector> basis;
    basis.push_back(work.vector());
    const auto most = static_cast<std::size_t>(options.restart);
    std::vector<std::vector<real>> h(most); // column k: entries 0 ... k + 1, rotated as they come
    std::vector<real> cosines(most), sines(most), right(most + 1);
    for (int iteration = 0;;) {
        d.copyFrom(x);
        multiply(d, basis[0]);
        Detail::residualOf(b, basis[0]);
        real residual = work.norm(basis[0]);
        if (work.isOver(iteration, residual))
            return work.result();
        basis[0] *= 1 / residual;
        right[0] = residual;
        std::size_t k = 0;
        for (bool over = false; k < most && !over; ++k) {
            precondition(std::as_const(basis[k]), d);
            if (basis.size() == k + 1)
                basis.push_back(work.vector());
            multiply(d, basis[k + 1]);
            std::vector<real> &column = h[k];
            column.assign(k + 2, 0);
            for (std::size_t i = 0; i <= k; ++i) {
                column[i] = work.dot(basis[i], basis[k + 1]);
                basis[k + 1].addTo(basis[i], -column[i]);
            }
            column[k + 1] = work.norm(basis[k + 1]);
            const real rest = column[k + 1];
            if (rest > 0)
                basis[k + 1] *= 1 / rest;
            for (std::size_t i = 0; i < k; ++i) {
                const real upper = column[i];
                column[i] = cosines[i] * upper + sines[i] * column[i + 1];
                column[i + 1] = cosines[i] * column[i + 1] - sines[i] * upper;
            }
            const real length = std::hypot(column[k], column[k + 1]);
            cosines[k] = length > 0 ? column[k] / length : 1;
            sines[k] = length > 0 ? column[k + 1] / length : 0;
            column[k] = length;
            right[k + 1] = -sines[k] * right[k];
            right[k] *= cosines[k];
            residual = std::abs(right[k + 1]);
            over = work.isOver(++iteration, residual) || rest == 0;
        }
        for (std::size_t i = k; i-- > 0;) { // back substitution
            for (std::size_t j = i + 1; j < k; ++j)
                right[i] -= h[j][i] * right[j];
            right[i] = h[i][i] != 0 ? right[i] / h[i][i] : 0;
        }
        if (!std::isfinite(residual))
            return work.result();
        z.setConstant(0);
        for (std::size_t i = 0; i < k; ++i)
            z.addTo(basis[i], right[i]);
        precondition(std::as_const(z), d);
        x += d; // the next turn looks whether the residual has become what is expected
    }
}

} // namespace DNDS
