// Package fairness measures what a quiet organization notices of a
// noisy one. It starts an installation as one process and attacks
// it from a second one, while this one measures the responses and
// views of organizations that send little.
package fairness
