//go:build race

package watermillbus_test

const raceDetector = true
