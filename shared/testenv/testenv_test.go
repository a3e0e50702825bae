package testenv_test

import (
	"log/slog"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// What is logged behind the end of a test is dropped, without a look at the test.
func TestLoggerOutlivesItsTest(t *testing.T) {
	var logger *slog.Logger
	t.Run("ends", func(t *testing.T) { logger = testenv.Logger(t) })
	logger.Info("too late")
}
