package testenv_test

import (
	"log/slog"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// A log line after the end of a test is dropped, without using the test.
func TestLoggerOutlivesItsTest(t *testing.T) {
	var logger *slog.Logger
	t.Run("ends", func(t *testing.T) { logger = testenv.Logger(t) })
	logger.Info("too late")
}
