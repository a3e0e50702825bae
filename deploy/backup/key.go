package backup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/process"
)

// keysFolder holds the copies of secrets and certificates.
const keysFolder = "keys"

// keyFiles returns the settings that name a file which no database
// contains: without it nobody can sign in at the brokers and databases,
// verify old signatures, or be trusted by clients.
func keyFiles() (variables []string) {
	for _, setting := range os.Environ() {
		name, file, _ := strings.Cut(setting, "=")
		if strings.HasPrefix(name, "WEIR_") && strings.HasSuffix(name, process.FileSuffix) && file != "" {
			variables = append(variables, name)
		}
	}
	return variables
}

// keys copies those files, or names them.
func (w *work) keys() (err error) {
	variables := keyFiles()
	if !w.Keys {
		if len(variables) > 0 {
			fmt.Fprintf(w.out, "keys      are not in it, keep them elsewhere: %s\n", strings.Join(variables, ", "))
		}
		return nil
	}
	if err := os.Mkdir(filepath.Join(w.dir, keysFolder), 0o700); err != nil {
		return err
	}
	for _, variable := range variables {
		if err := copyKey(os.Getenv(variable), filepath.Join(w.dir, keysFolder, variable)); err != nil {
			return fmt.Errorf("cannot copy the file of %s: %w", variable, err)
		}
	}
	fmt.Fprintf(w.out, "keys      %s\n", strings.Join(variables, ", "))
	w.manifest.Keys, err = filesIn(w.dir, keysFolder)
	return err
}

func copyKey(from, to string) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return atomicfile.Write(to, string(raw), 0o600)
}
