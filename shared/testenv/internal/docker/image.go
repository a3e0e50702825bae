package docker

import (
	"cmp"
	"os"
)

// PostgresImage is the image of PostgreSQL's containers.
func PostgresImage() string { return cmp.Or(os.Getenv("WEIR_TEST_POSTGRES_IMAGE"), "postgres:17") }
