"""Every rule about words, once: terms, stems, stop words, names, numbers, dates, prose. Pure."""
