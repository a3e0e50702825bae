// Package fairness measures what a quiet organization notices of a noisy
// one. The noisy one attacks from a process of its own, while this one
// measures the answers and views of organizations that send little.
package fairness
