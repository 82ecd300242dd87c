"""What the formats of Chinese venues share: text files in blocks, Beijing time, trading sessions.

No format by itself; used by shanghai, shenzhen, cffex and wondertrader.
"""
