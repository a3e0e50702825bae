package endpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/process"
)

// SharedDatabase is the setting for the database of all modules.
const SharedDatabase = "WEIR_DATABASE_URL"

// DatabaseOf is the setting for the database of one module, where each has its
// own.
func DatabaseOf(module string) string {
	return "WEIR_" + strings.ToUpper(module) + "_DATABASE_URL"
}

// DatabaseURL is the address of a module's database. It comes from the
// environment or from a file, never from a flag: it holds a password.
func DatabaseURL(module, dataDir string) (httpapi.Secret, error) {
	for _, variable := range []string{DatabaseOf(module), SharedDatabase} {
		if url := os.Getenv(variable); url != "" {
			return httpapi.Secret(url), process.CheckDatabaseURL(url)
		}
		if file := os.Getenv(variable + process.FileSuffix); file != "" {
			url, err := process.SecretIn(file, variable+process.FileSuffix)
			if err == nil {
				err = process.CheckDatabaseURL(url)
			}
			return httpapi.Secret(url), err
		}
	}
	url, err := postgres.Running(filepath.Join(dataDir, "postgres"))
	if errors.Is(err, postgres.ErrNotRunning) {
		return "", fmt.Errorf("neither %s nor %s is set, and no weir run is at work in the data directory %s", DatabaseOf(module), SharedDatabase, dataDir)
	}
	return httpapi.Secret(url), err
}
