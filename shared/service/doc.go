// Package service is what every module's process stands on: the settings that
// each has, and what is opened by them. It knows no module, and starts nothing.
package service
