// Package fairness measures what a quiet organization notices of a noisy one: it starts an installation as a process of its
// own, attacks it from a second process, and looks from this one at the answers and views of organizations that send little.
package fairness
