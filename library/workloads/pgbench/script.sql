{{sql}}
