package http

import (
	"os"
	"testing"

	"github.com/weirlog/weir/shared/httpapi/routetest"
)

func TestMain(m *testing.M) { os.Exit(routetest.Main(m)) }
