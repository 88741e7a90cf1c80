// Strandline shows people who run machine-learning jobs where their memory went.
package main

import (
	"os"

	"strandline/cli"
)

func main() { os.Exit(cli.Main(cli.Process())) }
