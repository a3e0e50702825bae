// Package service is the base of every module's process: the common
// settings, and what they open. It knows no module, and starts nothing.
package service
