package parse

// Fio reads fio's JSON+ and histogram logs.
func Fio(in Input) (Result, error) { panic("todo") }
