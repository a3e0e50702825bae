package logend_test

import (
	"os"
	"testing"

	"github.com/weirlog/weir/shared/bus/bustest"
)

func TestMain(m *testing.M) { os.Exit(bustest.Main(m)) }
